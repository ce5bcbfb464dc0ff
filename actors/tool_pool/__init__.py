"""The actor that runs tools, and the threads of sync tools (semantics 8)."""

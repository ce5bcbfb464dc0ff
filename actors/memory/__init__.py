"""The actor that extracts memories (semantics 12)."""

"""What a tool is: declaration, schema, signature (semantics 8)."""

"""What is remembered across sessions: extraction and search (semantics 12). Pure."""

"""The actor that writes session storage, and the journal that posts to it (semantics 7)."""

"""What a session remembers, and what a request carries of it (semantics 5, 9). Pure."""

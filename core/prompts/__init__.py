"""The system prompt, skills, and the tags around inserted text (semantics 10, 11). Pure."""

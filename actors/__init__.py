"""Trio tasks: guard, session, turn, tool pool, recorder, memory extractor, and the handles that a host holds."""

"""Keeps history within the model's window (semantics 9). Pure decisions."""

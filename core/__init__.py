"""Rules: pure functions and small classes. Imports messages, never trio: every rule is testable without a loop."""

"""What the actors share at the bottom: mailbox, lifetime, outcome, event stream, calls of user code."""

"""Work in other processes: what can be sent there, who does it, and what was done, kept for another day."""

"""What a run needs of the interpreter and of Trio: frames, hooks, leaks, channels. Knows nothing of scenarios."""

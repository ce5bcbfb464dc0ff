"""One run: a scenario in its own Trio loop, steered, watched and judged."""

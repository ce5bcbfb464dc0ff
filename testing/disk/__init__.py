"""A simulated folder whose files a crash may lose, tear or reorder until they are synced (semantics 15)."""

"""One turn: agent loop, tool batch, pipeline, compaction (semantics 6)."""

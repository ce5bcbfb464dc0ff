"""What a builder collects, validated together and frozen (semantics 2)."""

"""The smaller commands, one a file."""

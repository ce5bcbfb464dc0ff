"""What every command shares: exit codes, output, signals, paths, words."""

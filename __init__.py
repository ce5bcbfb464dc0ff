"""youyou: an agent runtime for Trio."""

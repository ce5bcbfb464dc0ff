"""The second half: what is left after a stop, at every step of the loop, of youyou and of six other runtimes."""

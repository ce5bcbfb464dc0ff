"""An in-memory network for simulated programs: hosts, links, TCP sockets of Trio's own type (semantics 15)."""

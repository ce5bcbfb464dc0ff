"""What a host plugs in: the protocols, and the checks of what their implementations answer (semantics 4, 7)."""

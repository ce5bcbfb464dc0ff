"""``youyou chat``: with a terminal, and for one turn without."""

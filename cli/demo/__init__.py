"""``youyou demo``: a planned conversation, and checks of what it showed."""

"""Real parts at the edge: SDKs and databases. Imports messages and pure parts of core; nothing of ours imports it."""

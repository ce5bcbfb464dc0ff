"""Values that travel between host, agent, provider and storage. Imports nothing of ours but itself."""

"""For agents: scripted providers, stores in memory, conformance suites, and what the runtime promises."""

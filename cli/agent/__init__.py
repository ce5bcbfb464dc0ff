"""The command line's own agent: model, tools, profiles, stored sessions."""

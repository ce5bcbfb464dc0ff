"""What the adapters for model servers share: HTTP through an SDK, server-sent events, errors, history in parts."""

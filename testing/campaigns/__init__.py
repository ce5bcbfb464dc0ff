"""Many runs of one scenario: what to try, in which order, and when to stop."""

"""youyou measured beside other runtimes and beside floors: `python -m benchmarks`. Not shipped in the wheel."""

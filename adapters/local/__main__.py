"""The command that brings the weights of the local model, or says which would be used."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ...messages.errors import AgentError
from .weights import fetch_weights, find_weights


def main(arguments: Sequence[str] | None = None) -> int:
    """``python -m youyou.adapters.local fetch | where``."""
    parser = argparse.ArgumentParser(prog="python -m youyou.adapters.local", description="Weights of the local model.")
    parser.add_argument("action", choices=("fetch", "where"))
    action = parser.parse_args(arguments).action
    try:
        print(fetch_weights() if action == "fetch" else find_weights())
    except AgentError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Tokens of failures that were seen, kept from one run of a test suite to the next.

    seen = SeenFailures(rootdir / ".youyou")
    seen.tokens("tests/test_x.py::test_a")      # tried before anything else
    seen.keep("tests/test_x.py::test_a", ["yy1-a17.root"])

One small JSON file for each test, so that concurrent workers do not overwrite each other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import attrs


@attrs.frozen
class SeenFailures:
    """The folder ``.youyou`` of a test suite."""

    folder: Path

    def _file(self, test: str) -> Path:
        name = test.rpartition("::")[2].partition("[")[0]
        return self.folder / f"{name[:60]}-{hashlib.sha256(test.encode()).hexdigest()[:12]}.json"

    def tokens(self, test: str) -> tuple[str, ...]:
        """Tokens kept for ``test``. A file that cannot be read counts as none: it is only a memory of past runs."""
        try:
            kept = json.loads(self._file(test).read_text("utf-8"))
            return tuple(token for token in kept["tokens"] if isinstance(token, str))
        except (OSError, ValueError, KeyError, TypeError):
            return ()

    def keep(self, test: str, tokens: Sequence[str]) -> None:
        """Keep ``tokens`` in place of those kept before; none of them removes the file."""
        file = self._file(test)
        if not tokens:
            file.unlink(missing_ok=True)
            return
        self.folder.mkdir(exist_ok=True)
        ignore = self.folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", "utf-8")
        file.write_text(json.dumps({"test": test, "tokens": list(tokens)}, indent=1) + "\n", "utf-8")

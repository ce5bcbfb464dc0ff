"""``pytest --youyou-workers N``: processes that do the runs of ``@swept`` and ``@explored`` tests, all of them."""

from __future__ import annotations

import pytest

from ..campaigns.decorator import defaults
from ..workers.crew import process_pool


class WorkersOfTests:
    """The plugin, while ``--youyou-workers`` is given."""

    def __init__(self, workers: int) -> None:
        if workers < 1:
            raise pytest.UsageError(f"--youyou-workers {workers}: write how many processes, at least 1")
        self._workers = workers

    def pytest_sessionstart(self) -> None:
        """Have them at hand; they begin with the first test that wants them."""
        self._pool = process_pool(self._workers)
        defaults.workers = self._pool

    def pytest_sessionfinish(self) -> None:
        """End them."""
        defaults.workers = None
        self._pool.shutdown(cancel_futures=True)

"""What tests of every folder share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def sigint_as_in_a_terminal() -> Iterator[None]:
    """Python's own handler for SIGINT, whatever started the tests.

    A shell starts what runs in the background with SIGINT ignored, and neither Python nor Trio changes that.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)

"""What tests of every folder share: the stage (see ``stage.py``), and Python's own handler for SIGINT."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

pytest_plugins = ["stage"]

# A few examples for each property in the quick tests, drawn anew each time; .ci/run asks for ten times as many.
settings.register_profile("youyou", max_examples=int(os.environ.get("YOUYOU_EXAMPLES", "30")), deadline=None)
settings.load_profile("youyou")


@pytest.fixture
def sigint_as_in_a_terminal() -> Iterator[None]:
    """Python's own handler for SIGINT, whatever started the tests.

    A shell starts what runs in the background with SIGINT ignored, and neither Python nor Trio changes that.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)

"""Everything random in the runtime: ids, and the jitter of retries. A simulation can seed it.

randomness.set(random.Random(7))        # in the context of the simulated program
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from random import Random, SystemRandom

# A context variable, not a module's global: a simulation seeds its own program only, while others run alongside.
randomness: ContextVar[Random] = ContextVar("youyou randomness", default=SystemRandom())  # noqa: B039  has no state
"""The source of randomness in this context; by default the operating system."""


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Within the block, and in tasks and runs that begin there, the same ids and jitter come each time."""
    token = randomness.set(Random(seed))
    try:
        yield
    finally:
        randomness.reset(token)


def new_id() -> str:
    """An id that nothing else has: 32 hexadecimal digits."""
    return f"{randomness.get().getrandbits(128):032x}"


def random() -> float:
    """A number from 0 to 1."""
    return randomness.get().random()

"""How long to wait before a request is tried again (semantics 4, "Retry")."""

from __future__ import annotations

from .config import RetryPolicy


def retry_delay_ms(policy: RetryPolicy, attempt: int, retry_after_ms: int | None, chance: float) -> int:
    """Milliseconds to wait after the ``attempt``-th try (from 1) has failed.

    Doubles from ``base_ms`` up to ``max_ms`` and is spread by ``jitter``; what the other side asked for wins.

    Args:
        chance: a random number from 0 to 1.
    """
    if retry_after_ms is not None:
        return max(0, retry_after_ms)
    delay: int = min(policy.max_ms, policy.base_ms * 2 ** (attempt - 1))
    return round(delay * (1 + policy.jitter * (2 * chance - 1)))

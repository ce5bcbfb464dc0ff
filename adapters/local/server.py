"""A llama.cpp server inside this process, on a loopback port of its own (semantics 14).

Owns the native engine: its parameters, its start and its end. Knows nothing of requests; they go through HTTP like
those to any other server. Only who has the key of this run is served: other users of the machine reach the port too.

    async with serving(path, ServerSettings()) as address:
        ... address.base_url, address.api_key
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import trio

from ...messages.errors import ProviderError
from ..extras import import_extra

SLOTS = 3
"""Requests served at once; more of them queue. A slot remembers its last prompt, and prompts are of three kinds."""

# A cancelled prefill stops at the next batch, so batches are small: 128 tokens take about a second on one slow core.
_BATCH = 128
_LONGEST_ANSWER = 512
_REPEAT_PENALTY = 1.1
# The engine looks whether a reader is still there at least this often; at its end it waits for that.
_PING_SECONDS = 1
_STOP_SECONDS = 4.0


@attrs.frozen
class ServerSettings:
    """``context_window`` is in tokens, for each of the requests served at once.

    One thread suits two cores: with as many threads as cores, the workers spin while they wait for each other, and an
    answer of a second takes twenty now and then.
    """

    context_window: int = 4096
    threads: int = 1


@attrs.frozen
class Address:
    """Where the server listens, and the key that it wants."""

    base_url: str
    api_key: str = attrs.field(repr=False)


@asynccontextmanager
async def serving(weights: Path, settings: ServerSettings) -> AsyncIterator[Address]:
    """Run the engine on ``weights``.

    The engine holds the interpreter lock while it loads: about half a second for the small model, longer for bigger
    ones. Nothing else in the process runs meanwhile.

    Cancellation: a checkpoint on the way in; an engine that was still loading is stopped as soon as it has loaded. On
    the way out the engine is always stopped, within seconds, whatever the outer scope.

    Raises:
        InvalidConfig: ``xllamacpp`` is not installed or cannot be loaded.
        ProviderError: the engine cannot load the file.
    """
    key = secrets.token_urlsafe(24)
    limiter = trio.CapacityLimiter(2)
    # Abandoned, the thread's list is garbage when it arrives, and with it the engine.
    engine = await trio.to_thread.run_sync(_boot, weights, settings, key, abandon_on_cancel=True, limiter=limiter)
    try:
        yield Address(f"{engine[0].listening_address}/v1", key)
    finally:
        with trio.move_on_after(_STOP_SECONDS, shield=True):
            # The engine stops when the last reference goes.
            await trio.to_thread.run_sync(engine.clear, abandon_on_cancel=True, limiter=limiter)


def _boot(weights: Path, settings: ServerSettings, key: str) -> list[Any]:
    xllamacpp: Any = import_extra("xllamacpp", "local")
    params = xllamacpp.CommonParams()
    _describe(params, weights, settings)
    params.api_keys = [key]
    try:
        return [xllamacpp.Server(params)]
    except RuntimeError as error:
        raise ProviderError(
            f"llama.cpp cannot load {weights} (damaged, too big for the memory, or of an unknown kind): {error}",
            retryable=False,
        ) from error


def _describe(params: Any, weights: Path, settings: ServerSettings) -> None:
    params.model.path = str(weights)
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.offline = True
    params.verbosity = -1  # says nothing, so that a terminal application keeps its screen
    params.ui = params.endpoint_slots = False
    params.warmup = params.fit_params = False
    params.n_parallel = SLOTS
    params.n_ctx = settings.context_window * SLOTS
    params.n_batch = params.n_ubatch = _BATCH
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings.threads
    params.cache_ram_mib = 0
    params.sse_ping_interval = _PING_SECONDS
    params.n_predict = _LONGEST_ANSWER
    params.sampling.temp = 0.0
    params.sampling.penalty_repeat = _REPEAT_PENALTY

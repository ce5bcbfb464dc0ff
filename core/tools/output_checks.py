"""What a tool hands over, judged where it is handed over (semantics 1, 8).

    checked_output({"city": "Oslo"})            # ToolOutput('{"city":"Oslo"}')
    checked_output(ToolOutput("ok", metadata={"when": date.today()}))       # raises NotPlain: the call's error result

Pure. A tool is code of others: what is not plain data costs its own call, or its own report, and nothing else.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...messages.events import ToolOutput
from ...messages.plain import NotPlain, plain_json, plain_object, plain_text
from ...messages.text import MEBIBYTE
from .declaration import to_output

MOST_PROGRESS = 65_536
"""Bytes of JSON text that one report of progress may have."""


def checked_output(value: object) -> ToolOutput:
    """What a tool returned, as plain data. Content beyond what is kept anyway is left out, for the caller to say so.

    Raises:
        NotPlain: its metadata is not a JSON object, or has more than 1 MiB of JSON text; or ``is_error`` is not a bool.
        TypeError: it returned what JSON cannot carry.
    """
    output = to_output(value)
    if not isinstance(output.is_error, bool):
        raise NotPlain(f"['is_error'] is {output.is_error!r}, where True or False must be")
    return ToolOutput(_head(output.content), output.is_error, _metadata(output.metadata))


def _head(content: str) -> str:
    # One character more than is kept tells that something was cut. Not content[...]: a subclass may answer anything.
    return plain_text(str.__getitem__(content, slice(0, MEBIBYTE + 1)))


def _metadata(metadata: object) -> Any:
    if metadata is None:
        return None
    try:
        plain = plain_object(metadata)
    except NotPlain as refused:
        raise NotPlain(refused.problem, ("metadata", *refused.path)) from None
    if len(msgspec.json.encode(plain)) > MEBIBYTE:
        raise NotPlain("has more than 1 MiB of JSON text", ("metadata",))
    return plain


def checked_progress(progress: object) -> Any:
    """A report of progress as plain, read-only data.

    Raises:
        NotPlain: it is not JSON data, or has more than `MOST_PROGRESS` bytes of JSON text.
    """
    plain = plain_json(progress)
    if len(msgspec.json.encode(plain)) > MOST_PROGRESS:
        raise NotPlain(f"has more than {MOST_PROGRESS} bytes of JSON text")
    return plain

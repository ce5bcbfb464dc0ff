"""Large outputs of tools: kept in a folder, and read by the model in pieces (no extra needed).

    outputs = Offload("outputs", limit=8_000)
    builder.register_tool(outputs.of(read_log)).register_tool(outputs.reader())

Nothing of the core knows of it: an offloaded tool is a tool whose output is short. Files are the host's, which removes
the folder when it likes: a session that is resumed later may still ask for them.
"""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path

import attrs
import trio

from ..core.ports.protocols import ToolHandler, ToolInput
from ..core.randomness import new_id
from ..core.tools.declaration import Execute, ThreadFunction, Tool, tags_of
from ..messages.errors import InvalidConfig
from ..messages.events import ToolOutput

__all__ = ["Offload"]

_ID = re.compile(r"[0-9a-f]{32}")


class Offload:
    """Keeps outputs of tools that are larger than a limit, and gives the model a tool to read them.

    Synopsis::

        outputs = Offload("outputs", limit=8_000)
        builder.register_tool(outputs.of(read_log)).register_tool(outputs.reader())

    An id, 128 random bits, is all that it takes to read an output: use a folder for each user where that matters.
    Shapes: all counts are characters.

    Args:
        folder: where the outputs go, as UTF-8 files; made when the first one comes.
        limit: characters that an output may have without being kept, and that one reading gives at most.
    """

    def __init__(self, folder: str | os.PathLike[str], *, limit: int = 20_000) -> None:
        # Below that, what is said about an output would be longer than the output.
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 500:
            raise InvalidConfig(f"limit={limit!r}; pass a number of characters, 500 or more")
        self._folder = Path(folder)
        self._limit = limit

    def of(self, tool: ToolHandler) -> Tool:
        """The same tool, with its large outputs kept in the folder.

        Errors: an output that cannot be kept, on a full disk for one, is cut, and the model is told so: the tool has
        done its work by then. Cancellation: as for the tool; one that arrives while an output is written loses it.
        """
        execute: Execute = partial(self._awaited, tool)
        if isinstance(tool.execute, ThreadFunction):
            execute = ThreadFunction(partial(self._in_thread, tool.execute), tool.execute.thread)
        return Tool(
            tool.name,
            tool.description,
            tool.parameters,
            execute,
            mutating=tool.mutating,
            tags=tags_of(tool),
            timeout_ms=getattr(tool, "timeout_ms", None),
            icon=getattr(tool, "icon", None),
            label=getattr(tool, "label", None),
        )

    def reader(self, name: str = "read_output") -> Tool:
        """The tool by which a model reads what was kept: from a character on, or from the next place of a text."""
        properties = {
            "id": {"type": "string", "description": "The id that the shortened output names."},
            "start": {"type": "integer", "minimum": 0, "description": "The first character to read. Default: 0."},
            "find": {"type": "string", "description": "Begin where this text comes next, from start on."},
        }
        return Tool(
            name,
            "Read a piece of a tool's output that was too large to be shown.",
            {"type": "object", "properties": properties, "required": ["id"], "additionalProperties": False},
            self._read,
            tags=("read",),
        )

    def _in_thread(self, function: ThreadFunction, input: ToolInput) -> ToolOutput:
        return self._shortened(input, function.call(input))

    async def _awaited(self, tool: ToolHandler, input: ToolInput) -> ToolOutput:
        output = await tool.execute(input)
        if not isinstance(output, ToolOutput) or len(str(output.content)) <= self._limit:
            return output
        return await trio.to_thread.run_sync(self._shortened, input, output)

    def _shortened(self, input: ToolInput, output: ToolOutput) -> ToolOutput:
        text = str(output.content)
        if len(text) <= self._limit:
            return output
        # A quarter for the beginning: enough to see what it is, and the rest is a call away.
        shown = self._limit // 4
        id = new_id()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            # A lone surrogate cannot be encoded, and must not cost the output.
            self._file(id).write_bytes(text.encode("utf-8", "replace"))
        except OSError as error:
            note = f"{len(text)} characters, cut here: the rest could not be kept ({error.strerror or error})"
            return attrs.evolve(output, content=f"{text[: self._limit - shown]}\n[{note}]")
        note = f"{len(text)} characters, of which these are the first {shown}; the whole output has the id {id}"
        metadata = {**(output.metadata or {}), "offloaded": {"id": id, "characters": len(text)}}
        return attrs.evolve(output, content=f"{text[:shown]}\n[{note}]", metadata=metadata)

    def _file(self, id: str) -> Path:
        return self._folder / f"{id}.txt"

    async def _read(self, input: ToolInput) -> ToolOutput:
        id, start = input.arguments["id"], input.arguments.get("start", 0)
        await trio.lowlevel.checkpoint()
        # Never a path: a model says what a web page told it to say.
        if not _ID.fullmatch(id):
            return ToolOutput(f"{id!r} is not the id of an output; an id has 32 hexadecimal digits", is_error=True)
        try:
            text = (await trio.Path(self._file(id)).read_bytes()).decode()
        except FileNotFoundError:
            return ToolOutput(f"there is no output {id!r} (any more); call its tool again", is_error=True)
        if find := input.arguments.get("find"):
            if (found := text.find(find, start)) < 0:
                return ToolOutput(f"{find!r} does not come at or after character {start}", is_error=True)
            start = found
        piece = text[start : start + self._limit]
        end = start + len(piece)
        rest = f"go on with start={end}" if end < len(text) else "this is the end"
        return ToolOutput(f"{piece}\n[characters {start} to {end} of {len(text)}; {rest}]")

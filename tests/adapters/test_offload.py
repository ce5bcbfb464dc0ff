"""Large outputs of tools: the model gets their beginning, and reads the rest in pieces."""

from __future__ import annotations

import re
import threading

import pytest
from youyou import AgentBuilder, AgentConfig, InvalidConfig, Notices, ToolCallEnd, ToolInput, ToolOutput, tool
from youyou.adapters.offload import Offload
from youyou.testing import ScriptedProvider, call, calls, say

TEXT = "".join(f"line {number}\n" for number in range(1_000))


@tool(tags=["read"], timeout_ms=5_000, label="The log")
async def read_log() -> str:
    """Read the log."""
    return TEXT


@tool(thread="abandon")
def read_log_in_thread() -> str:
    """Read the log."""
    return f"{threading.current_thread() is threading.main_thread()}\n{TEXT}"


async def run(handler, arguments=None):
    """What a call gives, without an agent."""
    return await handler.execute(ToolInput("c1", handler.name, arguments or {}))


async def id_of(output):
    """The id that a shortened output names."""
    return re.search(r"id ([0-9a-f]{32})\]$", output.content)[1]


async def test_a_large_output_is_kept_and_its_beginning_shown(tmp_path):
    """A quarter of the limit, how much there is, and under which id; the same for the host in the metadata."""
    output = await run(Offload(tmp_path, limit=1_000).of(read_log))

    id = await id_of(output)
    assert output.content == f"{TEXT[:250]}\n[{len(TEXT)} characters, of which these are the first 250; " + (
        f"the whole output has the id {id}]"
    )
    assert output.metadata == {"offloaded": {"id": id, "characters": len(TEXT)}}
    assert (tmp_path / f"{id}.txt").read_text() == TEXT


async def test_pieces_joined_are_the_output(tmp_path):
    """Reading on where each piece says so gives every character once."""
    outputs = Offload(tmp_path, limit=1_000)
    id = await id_of(await run(outputs.of(read_log)))
    pieces, start = [], 0
    while True:
        said = (await run(outputs.reader(), {"id": id, "start": start})).content
        piece, _, note = said.rpartition("\n[")
        pieces.append(piece)
        if "this is the end" in note:
            break
        start = int(re.search(r"start=(\d+)", note)[1])

    assert TEXT == "".join(pieces)
    assert len(pieces) == -(-len(TEXT) // 1_000)


async def test_a_text_is_found(tmp_path):
    """The piece begins where the text comes next."""
    outputs = Offload(tmp_path, limit=500)
    id = await id_of(await run(outputs.of(read_log)))

    assert (await run(outputs.reader(), {"id": id, "find": "line 777"})).content.startswith("line 777\nline 778\n")
    assert (await run(outputs.reader(), {"id": id, "find": "line 7", "start": 9_000})).is_error


async def test_a_small_output_is_left_alone(tmp_path):
    """Nothing is written for it."""
    assert ToolOutput(TEXT) == await run(Offload(tmp_path / "no", limit=50_000).of(read_log))
    assert not (tmp_path / "no").exists()


async def test_the_tool_stays_what_it_is(tmp_path):
    """Its schema, tags, time-out and way to run in a thread."""
    outputs = Offload(tmp_path, limit=1_000)
    kept, threaded = outputs.of(read_log), outputs.of(read_log_in_thread)

    assert (read_log.parameters, ("read",), 5_000, "The log") == (
        kept.parameters, kept.tags, kept.timeout_ms, kept.label,
    )  # fmt: skip
    assert read_log_in_thread.execute.thread == threaded.execute.thread


@pytest.mark.parametrize("id", ["../secret", "0" * 31, "0" * 32, "/etc/passwd\0"])
async def test_nothing_else_can_be_read(tmp_path, id):
    """An id is never a path, and one that is not known is told so."""
    (tmp_path / "secret.txt").write_text("secret")

    output = await run(Offload(tmp_path / "outputs").reader(), {"id": id})

    assert output.is_error
    assert "secret\n" not in output.content


async def test_an_output_that_cannot_be_kept_is_cut(tmp_path):
    """The tool has done its work: its output is not turned into an error."""
    (tmp_path / "file").write_text("in the way")

    output = await run(Offload(tmp_path / "file", limit=1_000).of(read_log))

    assert not output.is_error
    assert output.content.startswith(TEXT[:750])
    assert "the rest could not be kept" in output.content


async def test_a_lone_surrogate_does_not_cost_the_output(tmp_path):
    """It is replaced."""

    @tool
    async def odd() -> ToolOutput:
        """Say something odd."""
        return ToolOutput("\ud83d" + TEXT)

    outputs = Offload(tmp_path, limit=1_000)
    id = await id_of(await run(outputs.of(odd)))

    assert (await run(outputs.reader(), {"id": id})).content.startswith("?line 0\n")


@pytest.mark.parametrize("limit", [0, 499, True, "many"])
def test_a_limit_that_is_none_is_refused(tmp_path, limit):
    """With what to pass."""
    with pytest.raises(InvalidConfig, match="pass a number of characters, 500 or more"):
        Offload(tmp_path, limit=limit)


class Reads(ScriptedProvider):
    """A model that calls a tool, then reads the output whose id it was shown."""

    def __init__(self, name):
        super().__init__([calls(call(name, {})), say("unused"), say("Seen.")])

    async def chat(self, request):
        """Ask for the piece at line 500 in the second round."""
        async with super().chat(request) as stream:
            async for event in stream:
                if getattr(event, "text", "") == "unused":
                    id = await id_of(request.messages[-1])
                    yield call("read_output", {"id": id, "find": "line 500"})
                else:
                    yield event


@pytest.mark.parametrize("handler", [read_log, read_log_in_thread], ids=["async", "thread"])
async def test_an_agent_reads_a_large_output(tmp_path, handler):
    """In a turn: the call, its short output, and the piece that the model asks for."""
    outputs = Offload(tmp_path, limit=1_000)
    model = Reads(handler.name)
    config = AgentConfig(default_model="scripted", notices=Notices.english())
    builder = AgentBuilder(config).register_model_provider(model)
    builder.register_tool(outputs.of(handler)).register_tool(outputs.reader())
    async with builder.build() as agent, await agent.new_session() as session:
        turn = await session.send_message("What stands in line 500?")
        ends = [event.payload.output.content async for event in turn if isinstance(event.payload, ToolCallEnd)]

    assert len(ends[0]) < 1_000
    assert ends[1].startswith("line 500\nline 501\n")

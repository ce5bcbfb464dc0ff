"""What the log of the program says: each fault once, by the logger of the part, and nothing that went right."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import trio
import youyou
from youyou import AgentBuilder, AgentConfig, Notices, StorageError, tool
from youyou.testing import InMemorySessionStorage, ScriptedProvider, call, calls, say

PACKAGE = Path(youyou.__file__).parent
PAGE = Path(__file__).parents[3] / "docs" / "howto" / "logging.md"


async def talks(*rounds, tools=(), storage=None, times=1, **fields):
    """A session with so many turns; what closing it raised is nobody's matter here."""
    config = AgentConfig(default_model="scripted", notices=Notices.english(), **fields)
    builder = AgentBuilder(config).register_model_provider(ScriptedProvider(list(rounds)))
    for each in tools:
        builder.register_tool(each)
    if storage is not None:
        builder.register_session_storage(storage)
    try:
        async with builder.build() as agent, await agent.new_session() as session:
            for _ in range(times):
                await (await session.send_message("Hi")).result()
    except StorageError:
        pass


@tool
async def divide(by: int) -> str:
    """Divide."""
    return str(1 // by)


@tool
def divide_in_thread(by: int) -> str:
    """Divide."""
    return str(1 // by)


async def test_what_a_tool_raises_is_a_warning_once_and_its_traceback_for_debugging(caplog):
    """One record with the words, one more with the traceback, from async tools and from threads."""
    caplog.set_level(logging.DEBUG, "youyou")

    await talks(calls(call("divide", {"by": 0})), say("Sorry."), tools=[divide])
    await talks(calls(call("divide_in_thread", {"by": 0})), say("Sorry."), tools=[divide_in_thread])

    words = "raised ZeroDivisionError: integer division or modulo by zero"
    assert [
        ("youyou.tools", "WARNING", f"tool 'divide' {words}", None),
        ("youyou.tools", "DEBUG", "the traceback of tool 'divide'", ZeroDivisionError),
        ("youyou.tools", "WARNING", f"tool 'divide_in_thread' {words}",
         None),
        ("youyou.tools", "DEBUG", "the traceback of tool 'divide_in_thread'", ZeroDivisionError),
    ] == [
        (each.name, each.levelname, each.getMessage(), each.exc_info and each.exc_info[0]) for each in caplog.records
    ]  # fmt: skip


async def test_arguments_that_do_not_fit_are_no_warning(caplog):
    """They are the model's fault; the model is told."""
    caplog.set_level(logging.INFO, "youyou")

    await talks(calls(call("divide", {"by": "much"})), say("Sorry."), tools=[divide])

    assert [] == [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


async def test_what_a_tool_raises_while_it_is_cut_is_not_lost(caplog, autojump_clock):
    """Its outcome is the time-out; what its cleaning up raised is in the log alone."""

    @tool(timeout_ms=10)
    async def untidy() -> str:
        """Wait."""
        try:
            await trio.sleep_forever()
        finally:
            raise OSError("the file is gone")

    await talks(calls(call("untidy", {})), say("Sorry."), tools=[untidy])

    assert ["tool 'untidy' raised OSError: the file is gone, while it was cut"] == [
        each.getMessage() for each in caplog.records if each.name == "youyou.tools"
    ]


class Broken(InMemorySessionStorage):
    """Saves nothing."""

    async def save_events(self, session_id, events):
        """Fail."""
        await trio.lowlevel.checkpoint()
        raise OSError("the disk is full")


async def test_a_storage_that_stays_broken_is_a_warning_once(caplog):
    """However often the writes are tried again; the details are for debugging."""
    await talks(*[say("Hello.")] * 3, storage=Broken(), times=3)

    assert 1 == len([each for each in caplog.records if each.levelname == "WARNING" and "disk is full" in each.message])


async def test_nothing_is_logged_of_what_goes_right(caplog):
    """Not even for debugging."""
    caplog.set_level(logging.DEBUG, "youyou")

    await talks(calls(call("divide", {"by": 1})), say("One."), tools=[divide], storage=InMemorySessionStorage())

    assert [] == caplog.records


def test_the_page_names_every_logger():
    """Each name that the package logs under stands in the page's table, and no other."""
    used = {
        name
        for path in PACKAGE.rglob("*.py")
        if not {"tests", "build", "benchmarks"} & set(path.relative_to(PACKAGE).parts)
        for name in re.findall(r'getLogger\("(youyou[\w.]*)"\)', path.read_text(encoding="utf-8"))
    }

    assert used == set(re.findall(r"^\| `(youyou[\w.]*)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))

"""Sessions that are open in another terminal, and the line that says how to go on with one."""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest
import trio
from youyou import ModelInfo
from youyou.adapters.sqlite import SQLiteSessionStorage
from youyou.cli import main
from youyou.cli.agent import demo_model
from youyou.cli.agent.opened_session import IfTaken, Options, conversation
from youyou.cli.base.exits import CommandError
from youyou.cli.base.signals import Stops
from youyou.cli.chat.interactive import _farewell
from youyou.cli.subcommands.sessions_command import delete_sessions, rename_session
from youyou.messages.errors import AgentError

_made: list[bytes] = []


@pytest.fixture(autouse=True)
def at_home(monkeypatch: pytest.MonkeyPatch, home: Path, tmp_path: Path) -> None:
    """Files in this test's own directory, and a model that speaks at once."""
    monkeypatch.setenv("YOUYOU_HOME", str(home))
    monkeypatch.setattr(demo_model, "PAUSE", 0)
    monkeypatch.setattr("youyou.cli.agent.opened_session._LOOK_AGAIN_S", 0.01)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def session_id(capfd: pytest.CaptureFixture[str]) -> str:
    """The id of a stored session."""

    async def newest() -> str:
        async with SQLiteSessionStorage("s.db") as storage:
            return (await storage.list_sessions()).sessions[0].session_id

    # Made once: a whole conversation on the command line takes half a second.
    if not _made:
        assert 0 == main(["chat", "--model", "scripted", "--db", "s.db", "-p", "note: milk"])
        capfd.readouterr()
        with sqlite3.connect("s.db") as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.close()
        _made.append(Path("s.db").read_bytes())
    Path("s.db").write_bytes(_made[0])
    return trio.run(newest)


@asynccontextmanager
async def open_elsewhere(session_id: str) -> AsyncIterator[SQLiteSessionStorage]:
    """Another terminal has the session."""
    async with SQLiteSessionStorage("s.db") as storage:
        await storage.claim(session_id, owner="other", address="the other terminal", ttl_ms=60_000)
        yield storage


def resuming(session_id: str, **more: object) -> Options:
    return Options(model="scripted", db="s.db", resume=session_id, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", ["t", "w", "n", ""])
def test_a_chat_asks_what_to_do_about_a_session_that_is_open_elsewhere(session_id: str, answer: str) -> None:
    """Take it over, wait for it, begin another, or leave."""
    answers = {"t": IfTaken.STEAL, "w": IfTaken.WAIT, "n": IfTaken.NEW, "": IfTaken.LEAVE}

    async def try_it() -> tuple[bool, str]:
        asked = []
        async with open_elsewhere(session_id) as storage:

            async def ask(error: AgentError) -> IfTaken:
                asked.append(str(error))
                if answer == "w":
                    await storage.release(session_id, owner="other")
                return answers[answer]

            try:
                async with conversation(resuming(session_id), ask=ask) as (_, session):
                    return session.id == session_id, asked[0]
            except CommandError as error:
                return False, str(error)

    same, said = trio.run(try_it)
    assert (answer in ("t", "w"), True) == (same, "the other terminal" in said)
    assert ("--steal" in said) == (answer == "")


def test_without_a_terminal_the_error_says_how_to_take_it_over(session_id: str) -> None:
    """Nobody can be asked; with --steal nobody need be."""

    async def try_it() -> str:
        async with open_elsewhere(session_id):
            with pytest.raises(CommandError) as refused:
                async with conversation(resuming(session_id)):
                    pass
            async with conversation(resuming(session_id, steal=True)) as (_, session):
                assert session_id == session.id
        return str(refused.value)

    assert trio.run(try_it) == (
        f"session {session_id[:8]} is open elsewhere (the other terminal); close it there, or take it over: "
        "the same command with --steal"
    )


@pytest.mark.parametrize("command", ["delete", "rename"])
def test_a_session_that_is_open_elsewhere_is_left_alone(session_id: str, command: str) -> None:
    """Neither deleted nor written to: its owner would lose it in the middle of a turn."""

    async def try_it() -> bool:
        async with open_elsewhere(session_id) as storage:
            before = await storage.load_session(session_id)
            with pytest.raises(CommandError, match="the other terminal"):
                if command == "delete":
                    await delete_sessions("s.db", [session_id], True, False, Stops())
                else:
                    await rename_session("s.db", session_id, "Another title", Stops())
            return before == await storage.load_session(session_id)

    assert trio.run(try_it)


def test_delete_takes_it_all_the_same_if_it_is_told_to(session_id: str) -> None:
    """``--steal`` is the word for it."""

    async def try_it() -> object:
        async with open_elsewhere(session_id) as storage:
            assert 0 == await delete_sessions("s.db", [session_id], True, True, Stops())
            return await storage.load_session(session_id)

    assert None is trio.run(try_it)


def test_the_line_at_the_end_goes_on_with_the_same_conversation(
    session_id: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Word for word, from any directory: the same model, the same database, the notes that were kept."""

    async def say_goodbye() -> str:
        async with conversation(resuming(session_id)) as (_, session):
            return _farewell(resuming(session_id), session)

    line = trio.run(say_goodbye)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    program, *words = shlex.split(line.partition("to go on: ")[2])

    assert ("youyou", 0) == (program, main([*words, "-p", "which notes?"]))
    assert "1. milk" in capfd.readouterr().out


def test_the_line_at_the_end_says_everything_that_was_asked_for() -> None:
    """Another server and the questions before each tool, too."""

    class Said:
        id, history = "95665837aa", ("hi",)

    options = Options(model="openai:x y", base_url="http://localhost:1/v1", approve=True)
    assert (
        "youyou chat --resume 95665837 --model 'openai:x y' --base-url http://localhost:1/v1 --approve"
        == (
            _farewell(options, Said()).partition("to go on: ")[2]  # type: ignore[arg-type]
        )
    )


def test_another_model_is_named_or_asked_for(
    session_id: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without --model the session's own must be there; with it, the session goes on with that one."""
    monkeypatch.setattr(demo_model.DemoModel, "models", _renamed(demo_model.DemoModel.models))
    assert 0 == main(["chat", "--db", "s.db", "--resume", "--model", "scripted", "-p", "which notes?"])
    monkeypatch.setattr("youyou.cli.agent.opened_session.DEFAULT", "scripted")
    monkeypatch.setattr(demo_model.DemoModel, "models", _renamed(demo_model.DemoModel.models))
    capfd.readouterr()

    assert 1 == main(["chat", "--db", "s.db", "--resume", "-p", "which notes?"])
    assert f"say with --model who is to go on with session {session_id[:8]}" in capfd.readouterr().err


def _renamed(models: Callable[[object], list[ModelInfo]]) -> Callable[[object], list[ModelInfo]]:
    return lambda self: [attrs.evolve(model, id=f"{model.id}-newer") for model in models(self)]

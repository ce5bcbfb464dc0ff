"""Commands called in this process: what they print and how they end."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import trio
from youyou.adapters.extras import install_command
from youyou.cli import main
from youyou.cli.agent import demo_model
from youyou.cli.base.output import Output
from youyou.cli.base.signals import Stops
from youyou.cli.demo.run import _model_that_runs
from youyou.cli.subcommands.sessions_command import _fenced

SCENARIO = """
import trio

async def fine(sim):
    await trio.sleep(1)

async def breaks(sim):
    try:
        await trio.sleep(1)
    except trio.Cancelled:
        raise ValueError("a broken clean-up") from None
"""

BUILDER = """
from youyou import AgentBuilder, AgentConfig, AgentProfile, ProfileKind
from youyou.testing.agents.scripted import ScriptedProvider

builder = (
    AgentBuilder(AgentConfig("scripted"))
    .register_model_provider(ScriptedProvider([]))
    .register_profile(AgentProfile("mine", ProfileKind.SKILL, "Mine", "My own."))
)
"""


OWN_AGENT = """
from youyou import AgentBuilder, AgentConfig, Done, ModelCapabilities, ModelInfo, TextDelta, UserMessage

class Mine:
    id = "mine"
    def __init__(self, answer):
        self.answer = answer
    def models(self):
        return [ModelInfo("mine", "Mine", 8_000, ModelCapabilities(vision=True))]
    async def chat(self, request):
        yield TextDelta(self.answer(request))
        yield Done()

def echo(request):
    said = [message.content[0].text for message in request.messages if isinstance(message, UserMessage)]
    return f"mine: {said[-1]} [{'Be kind.' if 'Be kind.' in str(request.system) else 'no instructions'}]"

def see(request):
    return "\\n".join(
        " ".join([type(block).__name__, *filter(None, [getattr(block, "name", ""), block.media_type])])
        for block in request.messages[-1].content[1:]
    )

def made(answer):
    return AgentBuilder(AgentConfig("mine")).register_model_provider(Mine(answer))

def builder():
    return made(echo)

def looks():
    return made(see)
"""

OWN_STORAGE = """
from youyou.testing.agents.stores import InMemorySessionStorage

def builder():
    return made(echo).register_session_storage(InMemorySessionStorage())
"""


@pytest.fixture(autouse=True)
def at_home(monkeypatch: pytest.MonkeyPatch, home: Path, tmp_path: Path) -> None:
    """Files in this test's own directory, and a model that speaks at once."""
    monkeypatch.setenv("YOUYOU_HOME", str(home))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(demo_model, "PAUSE", 0)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])


def ask(*more: str) -> int:
    """One turn."""
    return main(["chat", "--model", "scripted", "-p", *more])


def test_one_turn_prints_the_answer_and_nothing_else(capfd: pytest.CaptureFixture[str]) -> None:
    """The text goes to stdout and ends with a line break."""
    assert 0 == ask("good morning")

    out, err = capfd.readouterr()
    assert "You said: *good morning*. That was message 1 of this conversation.\n" == out
    assert "" == err


def test_json_prints_every_event_the_terminal_one_last(capfd: pytest.CaptureFixture[str]) -> None:
    """One object a line, numbered without a gap."""
    assert 0 == ask("what is 2 * 3?", "--json")

    events = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert list(range(1, len(events) + 1)) == [event["sequence"] for event in events]
    assert "ToolCallStart" == events[0]["payload"]["type"]
    assert "TurnComplete" == events[-1]["payload"]["type"]


def test_sessions_are_listed_shown_resumed_and_deleted(capfd: pytest.CaptureFixture[str]) -> None:
    """What one turn stored is found again by the beginning of its id, until it is deleted."""
    ask("the first")
    capfd.readouterr()

    assert 0 == main(["sessions", "list"])
    session = capfd.readouterr().out.split()[0][:6]
    assert 0 == ask("the second", "--resume", session)
    assert "message 2" in capfd.readouterr().out
    assert 0 == main(["sessions", "show", session])
    shown = capfd.readouterr().out
    assert "you  the first" in shown and "you  the second" in shown
    assert 0 == main(["sessions", "show", "--json"])
    kinds = [json.loads(line)["payload"]["type"] for line in capfd.readouterr().out.splitlines()]
    assert 2 == kinds.count("UserMessage")
    assert 0 == main(["sessions", "delete", "--yes", session])
    assert capfd.readouterr().out.startswith("deleted ")
    assert 1 == main(["sessions", "show"])
    assert "there is no such session" in capfd.readouterr().err


def test_an_unclear_session_is_not_guessed(capfd: pytest.CaptureFixture[str]) -> None:
    """A title that two sessions share names neither; both are listed."""
    ask("same words")
    ask("same words")
    capfd.readouterr()

    assert 1 == main(["sessions", "show", "same"])

    assert "2 sessions fit 'same'; give more of the id:" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--yes", ""], 2, "'' is too short; give at least 4 characters of a session's id"),
        (["--yes", "{id:.3}"], 2, "is too short"),
        (["--yes", "the first words"], 1, "there is no such session"),
        (["--yes", "{id}", "nothing-like-it"], 1, "there is no such session"),
        (["{id}"], 2, "stdin is not a terminal, so nobody can be asked; say --yes"),
    ],
)
def test_nothing_is_deleted_by_mistake(
    capfd: pytest.CaptureFixture[str], arguments: list[str], code: int, says: str
) -> None:
    """The empty word, a short beginning, a title, one wrong id among right ones, nobody to ask: all refused whole."""
    ask("the first words")
    ask("the second words")
    main(["sessions", "list", "--json"])
    (newest, _) = [json.loads(line)["session_id"] for line in capfd.readouterr().out.splitlines()[-2:]]

    assert code == main(["sessions", "delete", *(each.format(id=newest) for each in arguments)])

    assert says in capfd.readouterr().err
    main(["sessions", "list"])
    assert 2 == capfd.readouterr().out.count("\n")


def test_sessions_are_searched_renamed_and_exported(capfd: pytest.CaptureFixture[str]) -> None:
    """A word of a message finds its session, whatever its case; a new title stays; a document holds what was said."""
    ask("what is 12 * 7?")
    ask("good morning")
    capfd.readouterr()

    assert 0 == main(["sessions", "search", "CALCULATOR"])
    found = capfd.readouterr().out
    session = found.split()[0]
    assert 0 == main(["sessions", "rename", session, "Sums of\tthe day"])
    assert f"{session} is now Sums of the day\n" == capfd.readouterr().out
    assert 0 == main(["sessions", "search", "sums of"])
    by_title = capfd.readouterr().out
    assert 0 == main(["sessions", "export", session])
    document = capfd.readouterr().out

    assert (2, 1) == (found.count("\n"), by_title.count("\n"))
    assert 'call  calculator(expression="12 * 7")' in found
    assert document.startswith("# Sums of the day\n\nSession `")
    assert '## you\n\nwhat is 12 * 7?\n\n## call\n\n```\ncalculator(expression="12 * 7")\n```\n' in document
    assert 0 == ask("and 2 * 3?", "--resume", session)
    assert "2 * 3 = 6" in capfd.readouterr().out


def test_an_export_quotes_what_holds_a_fence() -> None:
    """The result of a tool cannot end its own code block."""
    assert "````\n```\nx\n````" == _fenced("```\nx\n")


def test_a_chat_can_be_held_with_an_agent_of_ones_own(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """MODULE:BUILDER answers, its sessions are stored where those of the command line are, and can be resumed."""
    (tmp_path / "own_agent_of_test.py").write_text(OWN_AGENT)

    assert 0 == main(["chat", "own_agent_of_test:builder", "-p", "hello", "-s", "Be kind."])
    assert 0 == main(["chat", "own_agent_of_test:builder", "-p", "again", "--resume"])

    assert "mine: hello [Be kind.]\nmine: again [Be kind.]\n" == capfd.readouterr().out


def test_an_agent_with_a_storage_of_its_own_keeps_it(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Nothing goes into the command line's database then, and --db is refused."""
    (tmp_path / "storing_agent_of_test.py").write_text(OWN_AGENT + OWN_STORAGE)

    assert 0 == main(["chat", "storing_agent_of_test:builder", "-p", "hello"])
    assert 2 == main(["chat", "storing_agent_of_test:builder", "-p", "hello", "--db", "x.db"])

    assert "has a storage of its own; leave --db away" in capfd.readouterr().err
    main(["sessions", "list"])
    assert "no session was ever stored here" in capfd.readouterr().err


def test_files_go_with_the_message(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Text and images, told by their content, are blocks of the first message."""
    (tmp_path / "own_agent_of_test.py").write_text(OWN_AGENT)
    (tmp_path / "notes.md").write_text("# Ünïcode")
    (tmp_path / "picture.txt").write_bytes(b"\x89PNG\r\n\x1a\n and so on")

    assert 0 == main(["chat", "own_agent_of_test:looks", "-p", "x", "-a", "notes.md", "-a", "picture.txt"])

    assert "FileBlock notes.md text/markdown\nImageBlock image/png\n" == capfd.readouterr().out


def test_errors_are_cleaned_for_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    """What was typed comes back without its control characters, whichever part of the command line says it."""
    ask("so that there is a database")
    for arguments in (
        ["chat\x1b]0;x\x07"],
        ["profiles", "a\x1b[2J:b"],
        ["explore", "a\x1b[2J"],
        ["sessions", "show", "\x1b[2J"],
    ):
        assert main(arguments) in (1, 2)

    assert "\x1b" not in capfd.readouterr().err


def test_reading_sessions_makes_no_database(capfd: pytest.CaptureFixture[str], home: Path) -> None:
    """Listing where nothing was stored says so, and makes no file."""
    assert 0 == main(["sessions", "list"])

    assert "no session was ever stored here" in capfd.readouterr().err
    assert not (home / "sessions.db").exists()


def test_errors_have_words_and_no_traceback(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """An `AgentError` is one line on stderr and exit code 1."""
    assert 1 == ask("hello", "--db", str(tmp_path / "missing" / "x.db"))

    err = capfd.readouterr().err
    assert err.startswith("youyou: [STORAGE_ERROR] ")
    assert "does not exist; create it first" in err
    assert 1 == err.count("\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["chat", "--model", "gpt-5", "-p", "x"], "--model gpt-5 is unknown; write local"),
        (["chat", "--model", "scripted", "--base-url", "http://x", "-p", "x"], "--base-url goes with"),
        (["chat", "--json"], "--json goes with -p"),
        (["chat", "--steal", "-p", "x"], "--steal goes with --resume"),
        (["chat", "hello you"], "is not MODULE:BUILDER; to say it: youyou chat -p 'hello you'"),
        (["chat", "--modell", "x"], "youyou chat: error: unrecognized arguments: --modell; did you mean --model?"),
        (["sessions", "list", "extra"], "youyou sessions list: error: unrecognized arguments: extra"),
        (["sessions", "delete"], "usage: youyou sessions delete "),
        (["chat", "--resume", "--skill", "x", "-p", "x"], "keeps its profiles"),
        (["chat", "--resume", "-s", "x", "-p", "x"], "keeps its profiles and instructions"),
        (["chat", "--approve", "-p", "x"], "nobody can be asked"),
        (["chat", "json:decoder", "--model", "scripted", "-p", "x"], "has a model of its own"),
        (["chat", "-p", "x", "-a", "missing.txt"], "cannot attach missing.txt: No such file or directory"),
        (["chat", "-p", "x", "-a", sys.executable], "neither text in UTF-8 nor an image"),
        (["cht"], "did you mean chat?"),
        (["chat", "--modle", "x"], "did you mean --model?"),
        (["sessions", "delet"], "did you mean delete?"),
        (["sessions", "search", " "], "nothing to search for"),
        (["sessions", "rename", "x", " "], "at least one character that shows"),
        (["profiles", "nothing"], "is not 'module:builder'"),
        (["profiles", "json:dumps_not"], "cannot find 'json:dumps_not'"),
        (["profiles", "json:dumps"], "cannot be called without arguments"),
        (["profiles", "json:decoder"], "is not an AgentBuilder"),
        (["explore", "nothing"], "is not 'module:function'"),
        (["explore", "a:b", "--schedules", "0"], "is not a number from 1 on"),
        (["sessions", "list", "--limit", "-1"], "is not a number from 1 on"),
    ],
)
def test_what_is_not_understood_ends_with_2(capfd: pytest.CaptureFixture[str], arguments: list[str], says: str) -> None:
    """What was typed wrong is said on stderr, with what to type instead."""
    assert 2 == main(arguments)

    assert says in capfd.readouterr().err


def test_the_help_of_a_command_is_about_that_command(capfd: pytest.CaptureFixture[str]) -> None:
    """The exit codes of one are not those of another."""
    assert 0 == main(["sessions", "list", "--help"])

    told = capfd.readouterr().out
    assert ("explore" in told, "exit codes:" in told) == (False, True)


def test_a_missing_key_names_the_variable(capfd: pytest.CaptureFixture[str]) -> None:
    """Without a key the error says how to give one."""
    assert 1 == main(["chat", "--model", "openai:gpt-5-mini", "-p", "x"])

    assert "set OPENAI_API_KEY" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("package", "arguments", "extra"),
    [
        ("apsw", ["chat", "--model", "scripted", "--db", "x.db", "-p", "x"], "sqlite"),
        (
            "openai",
            ["chat", "--model", "openai:x", "--base-url", "http://x", "-p", "x"],
            "openai",
        ),
        ("anthropic", ["chat", "--model", "anthropic:x", "-p", "x"], "anthropic"),
        ("prompt_toolkit", ["chat", "--model", "scripted"], "cli"),
        ("apsw", ["demo", "--model", "scripted"], "demo"),
    ],
)
def test_a_missing_extra_names_the_command_to_run(
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    package: str,
    arguments: list[str],
    extra: str,
) -> None:
    """A package that is not installed is an error with the pip command in it."""
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [_Missing(package), *sys.meta_path])

    assert 1 == main(arguments)

    assert install_command(extra) in capfd.readouterr().err


class _Missing:
    """An import system in which one package is not installed."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.split(".")[0] == self._package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


class _Broken(_Missing):
    """An import system in which one package is installed, and the system's library that it needs is not."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.split(".")[0] == self._package:
            raise ImportError("libgomp.so.1: cannot open shared object file: No such file or directory")


def test_models_says_what_each_one_needs(capfd: pytest.CaptureFixture[str]) -> None:
    """Every form of --model is named, and what it still needs."""
    assert 0 == main(["models", "--json"])

    found = {choice["form"]: choice for choice in json.loads(capfd.readouterr().out)}
    assert ["local", "openai:NAME", "anthropic:NAME", "scripted"] == list(found)
    assert found["scripted"]["ready"]
    assert "OPENAI_API_KEY" in found["openai:NAME"]["needs"]


def test_profiles_are_json_of_the_own_agent_or_of_yours(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Without a name the profiles of 'youyou chat', with one those of that builder."""
    (tmp_path / "my_agent_of_test.py").write_text(BUILDER)

    assert 0 == main(["profiles"])
    own = json.loads(capfd.readouterr().out)
    assert 0 == main(["profiles", "my_agent_of_test:builder", "--resolved"])
    mine = json.loads(capfd.readouterr().out)

    assert ["facts", "notebook", "think-twice"] == [each["id"] for each in own]
    assert ["clock", "calculator"] == [tool["name"] for tool in own[0]["tools"]]
    assert [("mine", "scripted")] == [(each["id"], each["resolved"]["model_id"]) for each in mine]


def test_a_pipeline_profile_runs_its_steps(capfd: pytest.CaptureFixture[str]) -> None:
    """--skill chooses a profile; its steps are events."""
    assert 0 == ask("hello", "--skill", "think-twice", "--json")

    kinds = [json.loads(line)["payload"]["type"] for line in capfd.readouterr().out.splitlines()]
    assert (2, 2) == (kinds.count("StepStart"), kinds.count("StepEnd"))


def test_explore_finds_a_broken_clean_up_and_replays_it(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A failing scenario ends with 1, a page and a token; --replay prints the trace of that one run."""
    (tmp_path / "scenarios_of_test.py").write_text(SCENARIO)

    assert 0 == main(["explore", "scenarios_of_test:fine", "--schedules", "5"])
    capfd.readouterr()
    assert 1 == main(["explore", "scenarios_of_test:breaks", "--json", "--html", "report.html"])
    found = json.loads(capfd.readouterr().out)
    token = found["reports"][0]["failures"][0]["token"]
    assert 1 == main(["explore", "scenarios_of_test:breaks", "--replay", token])

    assert not found["ok"]
    assert "a broken clean-up" in (tmp_path / "report.html").read_text()
    assert ">>> cancel of root" in capfd.readouterr().out


@pytest.mark.long
def test_the_demo_on_the_scripted_model_keeps_its_promises(capfd: pytest.CaptureFixture[str]) -> None:
    """Tools concurrently and in turn, two cancels, a resume: every check holds."""
    assert 0 == main(["demo", "--model", "scripted"])

    out = capfd.readouterr().out
    assert "3 read-only tools ran at once" in out
    assert "1 tool finished and 2 were skipped" in out
    assert 6 == out.count("what usually goes wrong: ")
    assert "ok   cancelled at 40 moments, every history can be sent to any model\n" in out
    assert "at_end: the notebook counts its notes: is False; replay it with yy2-" in out
    assert "NOT" not in out
    assert "all of it held" in out


@pytest.mark.parametrize(
    ("finder", "says"),
    [(_Missing, "the package 'xllamacpp' is missing; run: "), (_Broken, "cannot be loaded: libgomp.so.1: cannot open")],
)
def test_without_its_small_model_the_demo_takes_the_scripted_one(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, finder: type[_Missing], says: str
) -> None:
    """Missing or broken, the reason and the remedy are one line, and the demonstration goes on."""
    monkeypatch.delitem(sys.modules, "xllamacpp", raising=False)
    monkeypatch.setattr(sys, "meta_path", [finder("xllamacpp"), *sys.meta_path])

    model = trio.run(_model_that_runs, "local", Output(Stops()))

    out = capfd.readouterr().out
    assert ("scripted", 1) == (model, out.count("\n"))
    assert out.startswith("the small model cannot run here, a scripted one takes its place: ")
    assert says in out

"""What can be typed, and which function does it. The functions themselves are imported when they are called."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from typing import Any, NoReturn

from .agent.model_choice import DEFAULT, FORMS
from .base.exits import exit_codes
from .base.output import put, say
from .base.signals import run
from .base.suggestions import did_you_mean

Parsers = Any
"""What ``add_subparsers`` returns; argparse keeps the class to itself."""

_CHOICE = re.compile(r"invalid choice: '([^']*)'")
_UNKNOWN = re.compile(r"unrecognized arguments: (--[\w-]+)")

ENVIRONMENT = """\
environment:
  YOUYOU_HOME        the directory for sessions and typed lines (default: the user's data directory)
  YOUYOU_MODEL       a GGUF file for --model local
  OPENAI_API_KEY     for --model openai:NAME
  ANTHROPIC_API_KEY  for --model anthropic:NAME"""


class _Parser(argparse.ArgumentParser):
    """An `ArgumentParser` that writes through the one cleaner and says what was probably meant."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does, but what is left over is told by the command that was meant, with its own usage."""
        parsed, left = super().parse_known_args(args, namespace)
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return parsed, left

    def error(self, message: str) -> NoReturn:
        """Say what was wrong, and what to type instead; exit code 2."""
        if found := _CHOICE.search(message):
            message += did_you_mean(found[1], self._commands(), mark="")
        elif found := _UNKNOWN.search(message):
            message += did_you_mean(found[1], self._options(), mark="")
        super().error(message)

    def _print_message(self, message: str, file: Any = None) -> None:
        if message:
            (say if file is sys.stderr else put)(message)

    def _commands(self) -> Iterator[str]:
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                yield from action.choices

    def _options(self) -> Iterator[str]:
        """The options of this parser and of all below it: what is left over is told by the topmost one."""
        yield from self._option_string_actions
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                for parser in action.choices.values():
                    yield from parser._options()


def build_parser() -> argparse.ArgumentParser:
    """The parser. Each command sets ``run``, a function of the parsed arguments that returns the exit code."""
    parser = _described(_Parser(prog="youyou"), "An agent runtime for Trio, on the command line.", "youyou")
    parser.add_argument("--version", action="version", version=f"youyou {version('youyou')}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_chat(commands)
    _add_demo(commands)
    _add_sessions(commands)
    _add_models(commands)
    _add_profiles(commands)
    _add_explore(commands)
    _add_completion(commands)
    return parser


_EXAMPLES = {
    "youyou": ["youyou demo", "youyou chat --model scripted", "youyou chat --help"],
    "chat": [
        "youyou chat",
        "youyou chat --model anthropic:claude-sonnet-4-5 --resume",
        "youyou chat shop.agent:builder",
        'youyou chat -p "What is on this picture?" -a picture.png --model openai:gpt-5-mini',
    ],
    "demo": ["youyou demo", "youyou demo --model scripted"],
    "sessions": ["youyou sessions list", "youyou sessions show 3f2a"],
    "list": ["youyou sessions list --limit 5"],
    "show": ["youyou sessions show", "youyou sessions show 3f2a --json"],
    "export": ["youyou sessions export 3f2a > talk.md"],
    "search": ["youyou sessions search lighthouse"],
    "rename": ['youyou sessions rename 3f2a "The lighthouse"'],
    "delete": ["youyou sessions delete 3f2a", "youyou sessions delete --yes 3f2a 77b0"],
    "models": ["youyou models"],
    "profiles": ["youyou profiles shop.agent:builder --resolved"],
    "explore": [
        "youyou explore shop.scenarios:buying",
        "youyou explore tests/scenarios.py:buying --html report.html",
        "youyou explore shop.scenarios:buying --workers 8 --budget 1h --until-quiet",
    ],
    "completion": ["youyou completion bash > ~/.local/share/bash-completion/completions/youyou"],
}


def _described(parser: argparse.ArgumentParser, text: str, name: str) -> argparse.ArgumentParser:
    parser.description = text
    lines = "".join(f"  {example}\n" for example in _EXAMPLES[name])
    parser.epilog = f"examples:\n{lines}\n{ENVIRONMENT}\n\n{exit_codes(name)}"
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    return parser


def _command(commands: Parsers, name: str, help: str, run_it: Callable[[argparse.Namespace], int]) -> Any:
    text = help[0].upper() + help[1:] + "."
    parser = _described(commands.add_parser(name, help=help), text, name)
    parser.set_defaults(run=run_it)
    return parser


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", default=DEFAULT, metavar="MODEL", help=f"{FORMS} (default: {DEFAULT})")


def _add_db(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--db", metavar="FILE", help="the database of sessions (default: one in your data directory)")


def _add_chat(commands: Parsers) -> None:
    parser = _command(commands, "chat", "talk to a model, or to your own agent, in the terminal", _chat)
    parser.add_argument(
        "builder", nargs="?", metavar="MODULE:BUILDER", help="your AgentBuilder, or a function that returns one"
    )
    parser.add_argument("--model", metavar="MODEL", help=f"{FORMS} (default: {DEFAULT})")
    parser.add_argument("--base-url", metavar="URL", help="another server for openai:NAME or anthropic:NAME")
    _add_db(parser)
    parser.add_argument(
        "--resume", nargs="?", const="", metavar="ID-PREFIX", help="go on with a stored session (default: the newest)"
    )
    parser.add_argument(
        "--steal", action="store_true", help="with --resume: take over a session that is open elsewhere"
    )
    parser.add_argument("--domain", metavar="ID", help="a domain profile; see 'youyou profiles'")
    parser.add_argument("--skill", metavar="ID", help="a skill profile; see 'youyou profiles'")
    parser.add_argument("-s", "--system", metavar="TEXT", help="instructions to the model, besides the agent's own")
    parser.add_argument(
        "-a", "--attach", action="append", default=[], metavar="FILE", help="an image or a text for the first message"
    )
    parser.add_argument("--approve", action="store_true", help="ask before each tool runs (in the chat: /approve)")
    parser.add_argument(
        "-p", "--prompt", metavar="TEXT", help="one turn without a terminal; '-' reads the text from stdin"
    )
    parser.add_argument("--json", action="store_true", help="with -p: print every event as one line of JSON")


def _chat(arguments: argparse.Namespace) -> int:
    from .agent.attachments import attached
    from .agent.opened_session import Options
    from .base.exits import UsageError
    from .chat.interactive import chat
    from .chat.single_turn import one_turn

    a = arguments
    if a.resume is not None and (a.domain or a.skill or a.system):
        raise UsageError("a resumed session keeps its profiles and instructions; leave --domain, --skill and -s away")
    if a.steal and a.resume is None:
        raise UsageError("--steal goes with --resume")
    if a.builder is not None and ":" not in a.builder:
        raise UsageError(f"{a.builder!r} is not MODULE:BUILDER; to say it: youyou chat -p {shlex.quote(a.builder)}")
    options = Options(
        builder=a.builder,
        model=a.model,
        base_url=a.base_url,
        db=a.db,
        resume=a.resume,
        steal=a.steal,
        domain=a.domain,
        skill=a.skill,
        system=a.system,
        attachments=tuple(attached(a.attach)),
        approve=a.approve,
    )
    if a.prompt is not None and a.approve:
        raise UsageError("--approve needs a chat in a terminal: with -p nobody can be asked")
    if a.prompt is not None:
        return run(partial(one_turn, options, a.prompt, a.json))
    if a.json:
        raise UsageError('--json goes with -p "..."')
    return run(partial(chat, options))


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def _add_demo(commands: Parsers) -> None:
    help = "hold a whole conversation by itself: tools concurrently and in turn, a cancel, a resume"
    parser = _command(commands, "demo", help, _demo)
    _add_model(parser)
    parser.add_argument("--db", metavar="FILE", help="the database of sessions (default: one that is removed again)")


def _demo(arguments: argparse.Namespace) -> int:
    from .demo.run import demo

    return run(partial(demo, arguments.model, arguments.db))


def _add_sessions(commands: Parsers) -> None:
    help = "list, show, export, search, rename, delete stored sessions"
    parser = _described(commands.add_parser("sessions", help=help), "Stored sessions.", "sessions")
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    listing = _command(actions, "list", "list the newest sessions", _list)
    show = _command(actions, "show", "show what was said in one session", _show)
    export = _command(actions, "export", "print one session as a Markdown document", _export)
    search = _command(actions, "search", "find sessions by what was said in them", _search)
    rename = _command(actions, "rename", "give a session another title", _rename)
    delete = _command(actions, "delete", "delete sessions for good", _delete)
    for action in (listing, search):
        action.add_argument("--limit", type=_count, default=20, metavar="N", help="how many (default: 20)")
    for action in (show, export):
        action.add_argument("session", nargs="?", metavar="ID-PREFIX", help="which one (default: the newest)")
    search.add_argument("words", metavar="WORDS", help="what stands in a title or a message, in upper or lower case")
    rename.add_argument("session", metavar="ID-PREFIX", help="which one")
    rename.add_argument("title", metavar="TITLE", help="its new title")
    delete.add_argument(
        "session", nargs="+", metavar="ID-PREFIX", help="which ones: at least four characters of each id"
    )
    delete.add_argument("-y", "--yes", action="store_true", help="do not ask")
    delete.add_argument("--steal", action="store_true", help="also what is open elsewhere; it ends there")
    for action in (listing, show, export, search, rename, delete):
        _add_db(action)
    for action in (listing, show, export, search):
        action.add_argument("--json", action="store_true", help="one line of JSON for each entry")


def _list(arguments: argparse.Namespace) -> int:
    from .subcommands.sessions_command import list_sessions

    return run(partial(list_sessions, arguments.db, arguments.limit, arguments.json))


def _show(arguments: argparse.Namespace) -> int:
    from .subcommands.sessions_command import show_session

    return run(partial(show_session, arguments.db, arguments.session, arguments.json))


def _export(arguments: argparse.Namespace) -> int:
    from .subcommands.sessions_command import export_session

    return run(partial(export_session, arguments.db, arguments.session, arguments.json))


def _search(arguments: argparse.Namespace) -> int:
    from .subcommands.sessions_command import search_sessions

    return run(partial(search_sessions, arguments.db, arguments.words, arguments.limit, arguments.json))


def _rename(arguments: argparse.Namespace) -> int:
    from .subcommands.sessions_command import rename_session

    return run(partial(rename_session, arguments.db, arguments.session, arguments.title))


def _delete(arguments: argparse.Namespace) -> int:
    from .subcommands.sessions_command import delete_sessions

    return run(partial(delete_sessions, arguments.db, arguments.session, arguments.yes, arguments.steal))


def _add_models(commands: Parsers) -> None:
    parser = _command(commands, "models", "say what --model can be, and what each still needs", _models)
    parser.add_argument("--json", action="store_true", help="as JSON")


def _models(arguments: argparse.Namespace) -> int:
    from .agent.model_choice import models

    return run(partial(models, arguments.json))


def _add_profiles(commands: Parsers) -> None:
    parser = _command(commands, "profiles", "print an agent's profiles as JSON, for a front end", _profiles)
    parser.add_argument(
        "builder", nargs="?", metavar="MODULE:BUILDER", help="your AgentBuilder (default: the agent of 'youyou chat')"
    )
    parser.add_argument("--resolved", action="store_true", help="with every effective value and where it came from")


def _profiles(arguments: argparse.Namespace) -> int:
    from .subcommands.profiles_command import profiles

    return run(partial(profiles, arguments.builder, arguments.resolved))


def _add_explore(commands: Parsers) -> None:
    help = "cancel a Trio scenario everywhere, break its ports, run it in many orders"
    parser = _command(commands, "explore", help, _explore)
    parser.add_argument("scenario", metavar="MODULE:SCENARIO", help="an async function; also PATH/TO/FILE.py:SCENARIO")
    parser.add_argument("--schedules", type=_count, metavar="N", help="orders to try (default: 200)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the first order (default: 0)")
    parser.add_argument("--cancel", default="root", metavar="NAME", help="the target to cancel (default: root)")
    parser.add_argument("--budget", metavar="TIME", help="real time for each report: 90, 90s, 15m or 1h")
    parser.add_argument("--until-quiet", action="store_true", help="try orders until nothing new comes")
    parser.add_argument("--workers", type=_count, metavar="N", help="processes that do the runs (default: this one)")
    parser.add_argument(
        "--profile", choices=["quick", "ci", "nightly"], help="how much to try, where nothing else says it"
    )
    parser.add_argument("--replay", metavar="TOKEN", help="run only what this token names, and print its trace")
    parser.add_argument("--html", metavar="FILE", help="write the report as one page")
    parser.add_argument("--json", action="store_true", help="print the reports as JSON")


def _explore(arguments: argparse.Namespace) -> int:
    from .subcommands.explore_command import explore

    a = arguments
    return explore(
        a.scenario,
        schedules=a.schedules,
        seed=a.seed,
        cancel=a.cancel,
        token=a.replay,
        html=a.html,
        as_json=a.json,
        budget=a.budget,
        workers=a.workers,
        until_quiet=a.until_quiet,
        profile=a.profile,
    )


def _add_completion(commands: Parsers) -> None:
    parser = _command(commands, "completion", "print a script for completion in your shell", _complete)
    parser.add_argument("shell", choices=["bash", "zsh", "tcsh"], help="the shell")


def _complete(arguments: argparse.Namespace) -> int:
    from .base.exits import OK, require

    require("shtab", "cli")
    import shtab

    put(shtab.complete(build_parser(), arguments.shell))
    return OK

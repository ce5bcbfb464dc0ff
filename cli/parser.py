"""What can be typed, and which function does it. The functions themselves are imported when they are called."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

from .agent.model_choice import DEFAULT, FORMS
from .base.exits import EXIT_CODES
from .base.signals import run

Parsers = Any
"""What ``add_subparsers`` returns; argparse keeps the class to itself."""


def build_parser() -> argparse.ArgumentParser:
    """The parser. Each command sets ``run``, a function of the parsed arguments that returns the exit code."""
    parser = _described(argparse.ArgumentParser(prog="youyou"), "An agent runtime for Trio, on the command line.")
    parser.add_argument("--version", action="version", version=f"youyou {version('youyou')}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_chat(commands)
    _add_demo(commands)
    _add_sessions(commands)
    _add_models(commands)
    _add_profiles(commands)
    _add_explore(commands)
    return parser


def _described(parser: argparse.ArgumentParser, text: str) -> argparse.ArgumentParser:
    parser.description = text
    parser.epilog = EXIT_CODES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    return parser


def _command(commands: Parsers, name: str, help: str, run_it: Callable[[argparse.Namespace], int]) -> Any:
    parser = _described(commands.add_parser(name, help=help), help[0].upper() + help[1:] + ".")
    parser.set_defaults(run=run_it)
    return parser


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", default=DEFAULT, metavar="MODEL", help=f"{FORMS} (default: {DEFAULT})")


def _add_db(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--db", metavar="FILE", help="the database of sessions (default: one in your data directory)")


def _add_chat(commands: Parsers) -> None:
    parser = _command(commands, "chat", "talk to a model in the terminal", _chat)
    _add_model(parser)
    parser.add_argument("--base-url", metavar="URL", help="another server for openai:NAME or anthropic:NAME")
    _add_db(parser)
    parser.add_argument(
        "--resume", nargs="?", const="", metavar="ID-PREFIX", help="go on with a stored session (default: the newest)"
    )
    parser.add_argument("--domain", metavar="ID", help="a domain profile; see 'youyou profiles'")
    parser.add_argument("--skill", metavar="ID", help="a skill profile; see 'youyou profiles'")
    parser.add_argument(
        "-p", "--prompt", metavar="TEXT", help="one turn without a terminal; '-' reads the text from stdin"
    )
    parser.add_argument("--json", action="store_true", help="with -p: print every event as one line of JSON")


def _chat(arguments: argparse.Namespace) -> int:
    from .agent.opened_session import Options
    from .base.exits import UsageError
    from .chat.interactive import chat
    from .chat.single_turn import one_turn

    a = arguments
    options = Options(a.model, a.base_url, a.db, a.resume, a.domain, a.skill)
    if a.resume is not None and (a.domain or a.skill):
        raise UsageError("a resumed session keeps its profiles; leave --domain and --skill away")
    if a.prompt is not None:
        return run(partial(one_turn, options, a.prompt, a.json))
    if a.json:
        raise UsageError('--json goes with -p "..."')
    return run(partial(chat, options))


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return int(text)


def _add_demo(commands: Parsers) -> None:
    help = "hold a whole conversation by itself: tools side by side and in turn, a cancel, a resume"
    parser = _command(commands, "demo", help, _demo)
    _add_model(parser)
    parser.add_argument("--db", metavar="FILE", help="the database of sessions (default: one that is removed again)")


def _demo(arguments: argparse.Namespace) -> int:
    from .demo.run import demo

    return run(partial(demo, arguments.model, arguments.db))


def _add_sessions(commands: Parsers) -> None:
    parser = _described(commands.add_parser("sessions", help="list, show, delete stored sessions"), "Stored sessions.")
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    listing = _command(actions, "list", "list the newest sessions", _list)
    listing.add_argument("--limit", type=_count, default=20, metavar="N", help="how many (default: 20)")
    show = _command(actions, "show", "show what was said in one session", _show)
    show.add_argument("session", nargs="?", metavar="ID-PREFIX", help="which one (default: the newest)")
    delete = _command(actions, "delete", "delete sessions for good", _delete)
    delete.add_argument("session", nargs="+", metavar="ID-PREFIX", help="which ones")
    for action in (listing, show, delete):
        _add_db(action)
    for action in (listing, show):
        action.add_argument("--json", action="store_true", help="one line of JSON for each entry")


def _list(arguments: argparse.Namespace) -> int:
    from .subcommands.sessions_command import list_sessions

    return run(partial(list_sessions, arguments.db, arguments.limit, arguments.json))


def _show(arguments: argparse.Namespace) -> int:
    from .subcommands.sessions_command import show_session

    return run(partial(show_session, arguments.db, arguments.session, arguments.json))


def _delete(arguments: argparse.Namespace) -> int:
    from .subcommands.sessions_command import delete_sessions

    return run(partial(delete_sessions, arguments.db, arguments.session))


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
    parser.add_argument("--schedules", type=_count, default=200, metavar="N", help="orders to try (default: 200)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the first order (default: 0)")
    parser.add_argument("--cancel", default="root", metavar="NAME", help="the target to cancel (default: root)")
    parser.add_argument("--replay", metavar="TOKEN", help="run only what this token names, and print its trace")
    parser.add_argument("--html", metavar="FILE", help="write the report as one page")
    parser.add_argument("--json", action="store_true", help="print the reports as JSON")


def _explore(arguments: argparse.Namespace) -> int:
    from .subcommands.explore_command import explore

    a = arguments
    return explore(
        a.scenario, schedules=a.schedules, seed=a.seed, cancel=a.cancel, token=a.replay, html=a.html, as_json=a.json
    )

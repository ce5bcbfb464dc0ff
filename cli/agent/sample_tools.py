"""Harmless tools, so that a conversation has something to show: readers, a writer, a slow one.

    for tool in sample_tools():
        builder.register_tool(tool)

Nothing leaves the process; notes are read back from the session when it is resumed.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable
from datetime import datetime

import trio

from ...core.ports.protocols import ToolInput
from ...core.tools.declaration import Tool, tool
from ...messages.history import ToolCall, ToolOutcome, ToolResult
from ...messages.records import SessionEvent

LOOKING_UP = 0.3
"""Seconds that reading takes, so that a person sees calls run concurrently."""
WRITING_DOWN = 0.6
"""Seconds that a note takes, so that a person sees them run one after the other, and can stop between two."""
_LONGEST_WAIT = 600
_LARGEST = 10**15
_OPERATORS: dict[type[ast.operator | ast.unaryop], Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}


def sample_tools(notes: list[str] | None = None) -> list[Tool]:
    """The tools, with a notebook: ``notes``, or one of their own."""
    kept = [] if notes is None else notes

    @tool(mutating=True, tags=("notes",), icon="pencil", label="Add a note")
    async def add_note(text: str) -> str:
        """Keep a note for later."""
        await trio.sleep(WRITING_DOWN)
        kept.append(text)
        return f"kept as note {len(kept)}: {text}"

    @tool(tags=("notes",), icon="list", label="List notes")
    async def list_notes() -> str:
        """Show all notes."""
        await trio.sleep(LOOKING_UP)
        return "\n".join(f"{number}. {text}" for number, text in enumerate(kept, 1)) or "there are no notes"

    return [clock, calculator, add_note, list_notes, wait]


def notes_in(events: Iterable[SessionEvent]) -> list[str]:
    """The notes that were kept in a stored session: the notebook itself ends with its process."""
    asked: dict[str, str] = {}
    notes = []
    for event in events:
        match event.payload:
            case ToolCall(tool_name="add_note", call_id=call_id, arguments=arguments):
                asked[call_id] = str(arguments.get("text", ""))
            case ToolResult(call_id=call_id, outcome=ToolOutcome.OK) if call_id in asked:
                notes.append(asked.pop(call_id))
    return notes


@tool(tags=("facts",), icon="clock", label="Clock")
async def clock() -> str:
    """The current date and time."""
    await trio.sleep(LOOKING_UP)
    return f"{datetime.now().astimezone():%A, %d %B %Y, %H:%M:%S %Z}"


@tool(tags=("facts",), icon="calculator", label="Calculator")
async def calculator(expression: str) -> str:
    """Work out an arithmetic expression."""
    await trio.sleep(LOOKING_UP)
    return f"{expression.strip()} = {evaluate(expression)}"


@tool(tags=("slow",), icon="hourglass", label="Wait", timeout_ms=(_LONGEST_WAIT + 10) * 1000)
async def wait(seconds: float, input: ToolInput) -> str:
    """Wait for a number of seconds.

    Args:
        seconds: How long, up to 600.
    """
    bounded = min(max(seconds, 0.0), _LONGEST_WAIT)
    end = trio.current_time() + bounded
    while (left := end - trio.current_time()) > 0:
        input.report({"seconds_left": round(left)})
        await trio.sleep(min(1.0, left))
    return f"waited {bounded:g} seconds"


def evaluate(expression: str) -> str:
    """The value of an arithmetic expression, as text. Knows numbers, brackets and operators, nothing else.

    Raises:
        ValueError: it is something else, or too large.
    """
    try:
        value = _value(ast.parse(expression.strip().replace("^", "**"), mode="eval").body)
    except (SyntaxError, ZeroDivisionError, OverflowError, RecursionError, MemoryError) as error:
        raise ValueError(f"cannot work out {expression[:80]!r}: {error}") from None
    return str(value) if isinstance(value, int) else f"{value:.10g}"


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return _bounded(value)
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
            return _bounded(_OPERATORS[type(op)](_value(operand)))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _binary(op, _value(left), _value(right))
        case _:
            raise ValueError(f"{ast.unparse(node)[:80]!r} is not arithmetic; use numbers, brackets and + - * / // % **")


def _binary(op: ast.operator, left: float, right: float) -> float:
    if isinstance(op, ast.Pow) and abs(right) > 64:
        raise ValueError("an exponent may be 64 at most")
    value = _OPERATORS[type(op)](left, right)
    if isinstance(value, complex):
        raise ValueError("the result is not a real number")
    return _bounded(value)


def _bounded(value: float) -> float:
    if abs(value) > _LARGEST:
        raise ValueError(f"numbers may be {_LARGEST:,} at most")
    return value

"""Random odd values put into every field that enters a live agent (semantics 1): it lives, and nothing differs then.

    python scripts/campaigns/odd_values.py --values 10000 --seed 1

After each value an ordinary turn must complete; after each session what a second agent resumes from the stored JSON
must equal what the first one held. Prints a line of figures; exits with 1 on any violation.
"""

from __future__ import annotations

import argparse
import datetime
import decimal
import enum
import logging
import random
import sys
import warnings
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import attrs
import trio
import youyou
from trio.testing import MockClock
from youyou.testing import InMemoryMemoryStorage, InMemorySessionStorage

VALUES_PER_SESSION = 20


class OddText(str):
    """A text that is more than a text."""


class OddNumber(int):
    """The same with a number."""


class OddDict(dict):  # type: ignore[type-arg]
    """The same with a dict."""


class Colour(enum.StrEnum):
    """A text by inheritance."""

    RED = "red"


class Hostile:
    """Raises whatever is asked of it."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    def __hash__(self) -> int:
        raise RuntimeError("no hash")

    def __bool__(self) -> bool:
        raise RuntimeError("no truth")

    def __len__(self) -> int:
        raise RuntimeError("no length")


def deep(levels: int) -> Any:
    """A list in a list in a list."""
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


def odd(dice: random.Random, room: int = 3) -> Any:
    """An odd value, or a plain one."""
    leaves: list[Callable[[], Any]] = [
        lambda: None,
        lambda: dice.choice([True, False]),
        lambda: dice.choice([0, -1, 7, 2**31, 2**63, -(2**64), 10**4299, 10**5000]),
        lambda: dice.choice([0.0, -0.0, 1.5, 1e308, float("nan"), float("inf"), -float("inf")]),
        lambda: dice.choice(["", " ", "x", "\x00", "\ud800", "\udc00\ud800", "é", "\U0001f600", "a" * 5_000, "\u202e"]),
        lambda: dice.choice([OddText("t"), OddNumber(3), OddDict(a=1), Colour.RED, OddText("\ud800")]),
        lambda: dice.choice(
            [b"ab", bytearray(b"c"), {1, 2}, frozenset(), range(3), complex(1, 2), ..., NotImplemented]
        ),
        lambda: dice.choice([datetime.date(2026, 1, 2), datetime.datetime(2026, 1, 2), decimal.Decimal("1.5")]),
        lambda: dice.choice([object(), Hostile(), Hostile, type, len, lambda: 1, ValueError("x"), iter([])]),
        lambda: deep(dice.choice([5, 99, 101, 5_000])),
        lambda: youyou.TextBlock("x"),
        lambda: youyou.ToolCall("c", "look", {}),
    ]
    branches: list[Callable[[], Any]] = [
        lambda: [odd(dice, room - 1) for _ in range(dice.randrange(4))],
        lambda: tuple(odd(dice, room - 1) for _ in range(dice.randrange(3))),
        lambda: {f"k{n}": odd(dice, room - 1) for n in range(dice.randrange(4))},
        lambda: dict.fromkeys([dice.choice([1, None, "�", (), 1.5, OddText("k"), True])], 1),
    ]
    return dice.choice([*leaves, *(branches if room else [])])()


@attrs.define(eq=False)
class Doors:
    """What the parts of the agent do next. ``armed``: which door gets an odd value, once."""

    dice: random.Random
    armed: str = ""
    used: Counter[str] = attrs.Factory(Counter)

    def at(self, door: str) -> bool:
        """Whether this door is the one; it is then open no more."""
        if self.armed != door:
            return False
        self.armed = ""
        self.used[door] += 1
        return True

    def value(self) -> Any:
        """An odd value."""
        return odd(self.dice)

    def changed(self, made: Any) -> Any:
        """``made`` with an odd value in one of its fields, past its own constructor."""
        field = self.dice.choice([each.name for each in attrs.fields(type(made)) if each.init])
        object.__setattr__(made, field, self.value())
        return made


@attrs.define(eq=False)
class Model:
    """A provider that asks for a tool once, and then says something."""

    doors: Doors
    id: str = "model"

    def models(self) -> list[youyou.ModelInfo]:
        """One."""
        return [youyou.ModelInfo("m", "M", 1_000_000, capabilities=youyou.ModelCapabilities(vision=True))]

    async def chat(self, request: youyou.ChatRequest) -> AsyncIterator[Any]:
        """One answer."""
        doors = self.doors
        if request.tools and not isinstance(request.messages[-1], youyou.ToolResult) and doors.armed:
            makers: dict[str, Callable[[], Any]] = {
                "event": doors.value,
                "TextDelta": lambda: doors.changed(youyou.TextDelta("a")),
                "ReasoningDelta": lambda: doors.changed(youyou.ReasoningDelta("a")),
                "ToolCallDelta": lambda: doors.changed(youyou.ToolCallDelta("c", "look", "{")),
                "Progress": lambda: doors.changed(youyou.Progress(youyou.TokenUsage())),
                "usage of Progress": lambda: youyou.Progress(doors.changed(youyou.TokenUsage(1, 2))),
                "ToolCall": lambda: doors.changed(youyou.ToolCall("c", "look", {})),
                "ChatError": lambda: doors.changed(youyou.ChatError("busy", retryable=False)),
                "Done": lambda: doors.changed(youyou.Done(youyou.TokenUsage(1, 2))),
                "usage of Done": lambda: youyou.Done(doors.changed(youyou.TokenUsage(1, 2))),
            }
            for door, make in makers.items():
                if doors.at(door):
                    yield make()
            if doors.armed in INSIDE:
                yield youyou.ToolCall("c", "look", {"x": 1})
        yield youyou.TextDelta("said")
        yield youyou.Done(youyou.TokenUsage(3, 4))


EVENTS = ("event", "TextDelta", "ReasoningDelta", "ToolCallDelta", "Progress", "usage of Progress", "ToolCall")
EVENTS += ("ChatError", "Done", "usage of Done")
INSIDE = ("tool answer", "ToolOutput", "tool progress", "tool error", "BeforeToolUse", "BeforeToolUse answer")
INSIDE += ("AfterToolUse answer",)
AROUND = ("TurnStart", "TurnStart answer", "TurnEnd answer", "memories", "Memory", "token counter", "input", "title")
DOORS = (*EVENTS, *INSIDE, *AROUND, "stored event", "stored fact", "stored log")


class Odd(Exception):
    """Raised with an odd value."""


@attrs.define(eq=False)
class Plug:
    """Hooks."""

    doors: Doors
    id: str = "plug"
    display_name: str = "Plug"
    description: str = "Hooks."

    async def initialize(self, config: Any) -> None:
        """Nothing."""

    async def shutdown(self) -> None:
        """Nothing."""

    def apply(self, ctx: Any) -> None:
        """All of them."""
        for kind in (youyou.BeforeToolUse, youyou.AfterToolUse, youyou.TurnStart, youyou.TurnEnd):
            ctx.tap(kind, self.heard)

    async def heard(self, event: Any) -> Any:
        """An odd answer, or one with an odd field."""
        name = type(event).__name__
        if self.doors.at(f"{name} answer"):
            return self.doors.value()
        if self.doors.at(name):
            return youyou.ContinueWith(self.doors.changed(attrs.evolve(event)))
        return None


class Memories(InMemoryMemoryStorage):
    """A storage whose answers are odd now and then."""

    doors: Doors

    async def search(self, namespace: str, query: str, limit: int) -> Any:
        """What there is, or something odd."""
        if self.doors.at("memories"):
            return self.doors.value()
        if self.doors.at("Memory"):
            return [self.doors.changed(youyou.Memory("1", namespace, "likes tea"))]
        return await super().search(namespace, query, limit)


class Sessions(InMemorySessionStorage):
    """Keeps JSON text, as a real one does; gives what it is told to give."""

    instead: Any = None

    async def load_session(self, session_id: str) -> Any:
        """As it is read from text."""
        if self.instead is not None:
            given, self.instead = self.instead, None
            return given[0]
        stored = await super().load_session(session_id)
        return (
            None
            if stored is None
            else [youyou.from_json(youyou.SessionEvent, youyou.to_json(event)) for event in stored]
        )


def builder(doors: Doors, store: Sessions) -> Any:
    """An agent with a door at every place."""

    async def look(given: youyou.ToolInput) -> Any:
        if doors.at("tool progress"):
            given.report(doors.value())
        if doors.at("tool error"):
            raise Odd(doors.value())
        if doors.at("tool answer"):
            return doors.value()
        if doors.at("ToolOutput"):
            return doors.changed(youyou.ToolOutput("ok"))
        return youyou.ToolOutput("ok")

    def count(text: str) -> Any:
        return doors.value() if doors.at("token counter") else len(text) // 4

    config = youyou.AgentConfig(
        "m", notices=youyou.Notices.english(), retry=youyou.RetryPolicy(attempts=1), token_counter=count
    )
    memories = Memories()
    memories.doors = doors
    made = youyou.AgentBuilder(config).register_model_provider(Model(doors)).register_plugin(Plug(doors))
    made.register_tool(youyou.Tool("look", "Look.", {"type": "object"}, look)).register_memory_storage(memories)
    return made.register_session_storage(store).build()


async def one_value(session: youyou.Session, doors: Doors) -> None:
    """An odd value where one is armed, and an ordinary turn after it."""
    try:
        if doors.at("title"):
            await session.set_title(doors.value())
        elif doors.at("input"):
            kind = doors.dice.choice(
                [youyou.TextBlock("x"), youyou.FileBlock("n", "t"), youyou.ImageBlock("aGk=", "image/png")]
            )
            given = doors.dice.choice([doors.value(), [doors.changed(kind)], youyou.UserInput("x")])
            turn = await session.send_message(doors.changed(given) if isinstance(given, youyou.UserInput) else given)
            await turn.result()
        else:
            await (await session.send_message("odd")).result()
    except youyou.AgentError:
        pass  # refused
    doors.armed = ""
    result = await (await session.send_message("plain")).result()
    assert (result.status, result.text) == ("completed", "said"), f"the next turn: {result}"


async def one_session(dice: random.Random, values: int, used: Counter[str], seen: list[str]) -> None:
    """So many values into one session; then what a second agent resumes is compared."""
    doors, store = Doors(dice), Sessions()
    doors.used = used
    async with builder(doors, store) as agent, await agent.new_session() as session:
        for _ in range(values):
            doors.armed = dice.choice(DOORS[:-3])
            seen.append(doors.armed)
            await one_value(session, doors)
    held = tuple(session.history), session.usage, session._opened.state.title
    async with builder(Doors(dice), store) as agent:
        for door in dice.choices(DOORS[-3:], k=2):
            used[door] += 1
            seen.append(door)
            store.instead = (damaged(store.events(session.id), door, doors),)
            try:
                resumed = await agent.resume_session(session.id)
            except youyou.AgentError:
                continue  # refused
            finally:
                store.instead = None
            # What was read is not what is stored: nobody who goes on with it may write into the log.
            await resumed.close()
    store = await copied(store, session.id)
    async with builder(Doors(dice), store) as agent, await agent.resume_session(session.id) as resumed:
        again = tuple(resumed.history), resumed.usage, resumed._opened.state.title
        assert held[0] == again[0], f"history differs: {different(held[0], again[0])}"
        assert held[1:] == again[1:], f"{held[1:]} live, {again[1:]} resumed"
        result = await (await resumed.send_message("plain")).result()
        assert result.status == "completed", result


async def copied(store: Sessions, session_id: str) -> Sessions:
    """The log up to the first session's end, in a storage of its own."""
    events = store.events(session_id)
    ends = [n for n, event in enumerate(events) if is_fact(event, "session_opened")]
    copy = Sessions()
    await copy.save_events(session_id, events[: ends[0]] if ends else events)
    return copy


def is_fact(event: youyou.SessionEvent, key: str) -> bool:
    """Whether this is a fact of this kind."""
    return isinstance(event.payload, youyou.Metadata) and event.payload.key == key


def different(live: Sequence[Any], again: Sequence[Any]) -> str:
    """Where two histories begin to differ."""
    for number, (one, other) in enumerate(zip(live, again, strict=False)):
        if one != other:
            return f"{number}: {one!r:.300} live, {other!r:.300} resumed"
    return f"{len(live)} messages live, {len(again)} resumed"


def damaged(events: Sequence[youyou.SessionEvent], door: str, doors: Doors) -> Any:
    """A stored log with something odd in it."""
    if door == "stored log":
        return doors.value()
    read = [youyou.from_json(youyou.SessionEvent, youyou.to_json(event)) for event in events]
    which = doors.dice.randrange(len(read))
    if door == "stored fact":
        facts = [n for n, event in enumerate(read) if isinstance(event.payload, youyou.Metadata)]
        which = doors.dice.choice(facts)
        value = dict(read[which].payload.value) if isinstance(read[which].payload.value, dict) else {}
        if value and doors.dice.random() < 0.8:
            value[doors.dice.choice(list(value))] = doors.value()
            object.__setattr__(read[which].payload, "value", value)
            return read
    target = doors.dice.choice([read[which], read[which].payload])
    doors.changed(target)
    return read


def campaign(values: int, seed: int) -> tuple[Counter[str], list[str]]:
    """So many odd values; how often each door was used, and what went wrong."""
    used: Counter[str] = Counter()
    wrong: list[str] = []
    number = 0
    while sum(used.values()) < values:
        number += 1
        seen: list[str] = []
        try:
            dice = random.Random(f"{seed}:{number}")
            trio.run(one_session, dice, VALUES_PER_SESSION, used, seen, clock=MockClock(autojump_threshold=0))
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            wrong.append(f"session {number} of seed {seed}, at {seen[-1] if seen else 'its beginning'}: {error!r:.600}")
            used["(ended early)"] += 1
    return used, wrong


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--values", type=int, default=10_000, help="odd values in all (default: 10000)")
    parser.add_argument("--seed", type=int, default=None, help="default: a fresh one")
    arguments = parser.parse_args()
    logging.getLogger("youyou").setLevel(logging.CRITICAL)  # each refused value is told, and here there is nothing else
    warnings.simplefilter("ignore")
    seed = random.SystemRandom().randrange(10**6) if arguments.seed is None else arguments.seed
    used, wrong = campaign(arguments.values, seed)
    for each in wrong[:20]:
        print(each)
    print(f"seed {seed}: {sum(used.values())} odd values at {len(used)} doors, {len(wrong)} violations")
    print(", ".join(f"{door} {count}" for door, count in sorted(used.items())))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

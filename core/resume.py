"""From a stored log to everything that a resumed session starts with (semantics 7 "Resume"). Pure, one pass.

    resumed = resume(events, config.notices)
    transcript.replace(resumed.history)
    journal.append_log_only(*resumed.synthetic)   # calls without a result are answered in the log too, never run again

A log may come from a killed process, an older or a newer version: what is unknown or unreadable in its metadata is
ignored, and its messages are made sendable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from ..messages.chat import Usage
from ..messages.codec import converter
from ..messages.events import TurnStatus
from ..messages.history import Message, SystemMessage, ToolResult, UserMessage
from ..messages.jsonvalue import thaw
from ..messages.records import Metadata, SessionEvent
from ..messages.text import clean_value
from .compaction.decisions import CompactionRecord
from .config import Notices, SessionConfig
from .history.repair import LoggedResponse, arrange, missing_result, normalise
from .history.request_view import holds_attachment

T = TypeVar("T")


@attrs.frozen
class StepOutcome:
    """How a pipeline step of the last turn ended."""

    step: str
    index: int
    success: bool
    output: str


@attrs.frozen
class LastTurn:
    """The turn of the newest input. ``status`` is None when its end was never stored: the process died in it.

    A turn whose input never came into the log, because a hook refused it or the process died before, does not count.

    ``steps`` are the outcomes that its pipeline has stored, by index, those of the turns it continues included.
    """

    turn_id: str
    status: TurnStatus | None = None
    input: UserMessage | None = None
    pipeline: str | None = None
    steps: tuple[StepOutcome, ...] = ()

    @property
    def unfinished(self) -> bool:
        """Whether it never ended."""
        return self.status is None


@attrs.frozen
class Refusal:
    """That this provider refused the images and files of these messages in requests to this model (semantics 6)."""

    provider: str
    model: str
    messages: tuple[UserMessage, ...]


@attrs.frozen
class Resumed:
    """What a session goes on with.

    ``synthetic``: results for calls without one, to be stored at once. ``started``: ids of all calls that began to run.
    ``turns``: how many turns there were. ``next_sequence``: of the next event to the host, one after the last stored
    mark. ``next_seq``: of the next stored event. ``memory_mark``: messages up to this seq have been extracted.
    ``meter``: what was learnt about the size of requests, for `TokenMeter.relearn`. ``epoch``: of the newest
    ``session_opened``, 0 if it was never resumed.
    """

    config: SessionConfig | None
    title: str | None
    history: tuple[Message, ...]
    synthetic: tuple[ToolResult, ...]
    started: frozenset[str]
    turns: int
    next_sequence: int
    next_seq: int
    usage: Usage
    memory_mark: int
    last_turn: LastTurn | None
    meter: Mapping[str, Any] = attrs.field(factory=dict)
    epoch: int = 0
    refusals: tuple[Refusal, ...] = ()
    unanswered: tuple[tuple[Message, str], ...] = ()
    """The last messages of turns that ended before anything was said, and why they ended."""
    problems: tuple[str, ...] = ()
    """What of the log could not be read, in words."""


def resume(events: Sequence[SessionEvent], notices: Notices) -> Resumed:
    """Everything that a session of these stored events goes on with.

    Only messages after the newest compaction are looked at; of the others just the type is asked.
    """
    # One pass over the facts and a second over what lies behind the newest compaction: a long log is not structured
    # twice.
    facts = _Facts()
    for event in events:
        facts.see(event)
    messages = facts.messages(events)
    return Resumed(
        config=facts.config,
        title=facts.title,
        # With what had started: only that tells "unknown" from "skipped", and a wrong "skipped" would be run again by
        # the model.
        history=normalise(messages, notices, facts.started),
        synthetic=_synthetic(messages, notices, facts.started),
        started=frozenset(facts.started),
        # A log of before turns were stored has inputs only.
        turns=max(facts.turns, facts.inputs if not facts.turns else 0),
        next_sequence=facts.sequence + 1,
        next_seq=facts.seq + 1,
        usage=facts.usage,
        memory_mark=facts.memory_mark,
        last_turn=facts.newest_turn(),
        meter=facts.meter,
        epoch=facts.epoch,
        refusals=facts.refused(events),
        unanswered=facts.left_unanswered(),
        problems=tuple(facts.problems),
    )


def messages_after(events: Iterable[SessionEvent], seq: int) -> tuple[Message, ...]:
    """The messages stored after ``seq``, as they were stored: what memory extraction has not read yet."""
    return tuple(event.payload for event in events if event.seq > seq and not isinstance(event.payload, Metadata))


def _synthetic(messages: Iterable[Message], notices: Notices, started: set[str]) -> tuple[ToolResult, ...]:
    """Results under the ids that the log has, so that the log itself is whole from now on."""
    unanswered = [call for entry in arrange(messages) if isinstance(entry, LoggedResponse) for call in entry.calls]
    return tuple(
        attrs.evolve(missing_result(call, notices, started), call_id=call.original_id)
        for call in unanswered
        if call.result is None
    )


@attrs.define(eq=False)
class _Facts:
    """What the metadata of a log say, the newest word of each key."""

    config: SessionConfig | None = None
    title: str | None = None
    record: CompactionRecord | None = None
    started: set[str] = attrs.field(factory=set)
    turns: int = 0
    inputs: int = 0
    sequence: int = 0
    seq: int = 0
    usage: Usage = attrs.field(factory=Usage)
    memory_mark: int = 0
    meter: Mapping[str, Any] = attrs.field(factory=dict)
    epoch: int = 0
    refusals: list[tuple[int, str, str]] = attrs.field(factory=list)
    last_turn: LastTurn | None = None
    begun: dict[str, LastTurn] = attrs.field(factory=dict)  # a turn may continue any earlier one
    newest: Message | None = None
    asked: bool = False  # nothing was said or called since the newest input
    at: int = 0  # the number of the newest message; below 1 in a compaction's
    unanswered: dict[int, tuple[Message, str]] = attrs.field(factory=dict)  # by such a number

    problems: list[str] = attrs.field(factory=list)

    def see(self, event: SessionEvent) -> None:
        self.seq = max(self.seq, event.seq)
        match event.payload:
            case Metadata(key=key, value=value):
                self._learn(key, value)
                if key == "content_refused" and isinstance(value, Mapping):
                    self.refusals.append((event.seq, str(value.get("provider")), str(value.get("model"))))
            case UserMessage() as message:
                self.inputs += 1
                self.newest, self.at, self.asked = message, event.seq, True
                if self.last_turn is not None and self.last_turn.input is None and self.last_turn.unfinished:
                    self._update(attrs.evolve(self.last_turn, input=message))
            case SystemMessage() as message:
                self.newest, self.at = message, event.seq
            case message:
                self.newest, self.at, self.asked = message, event.seq, False

    def left_unanswered(self) -> tuple[tuple[Message, str], ...]:
        """What no turn answered, the one included in which the process died."""
        self._crash()
        return tuple(self.unanswered.values())

    def _leave_unanswered(self, turn: LastTurn | None, cause: str) -> None:
        # As `Transcript.leave_unanswered`: a turn that ended, and whose input was kept.
        if self.asked and self.newest is not None and turn is not None and turn.input is not None:
            self.unanswered[self.at] = (self.newest, cause)

    def _crash(self) -> None:
        if self.last_turn is not None and self.last_turn.unfinished:
            self._leave_unanswered(self.last_turn, "crashed")

    def newest_turn(self) -> LastTurn | None:
        return next((turn for turn in reversed(self.begun.values()) if turn.input is not None), None)

    def refused(self, events: Iterable[SessionEvent]) -> tuple[Refusal, ...]:
        """What was refused and is still in history. Of what a compaction kept, all: it does not say from when it is."""
        if not self.refusals:
            return ()
        kept = () if self.record is None else self.record.messages
        after = 0 if self.record is None else self.record.through_seq
        numbered = [(0, message) for message in kept]
        numbered += [(e.seq, e.payload) for e in events if e.seq > after and not isinstance(e.payload, Metadata)]
        return tuple(
            Refusal(provider, model, tuple(m for at, m in numbered if at < seq and holds_attachment(m)))
            for seq, provider, model in self.refusals
        )

    def messages(self, events: Iterable[SessionEvent]) -> tuple[Message, ...]:
        if self.record is None:
            return messages_after(events, 0)
        return (*self.record.messages, *messages_after(events, self.record.through_seq))

    def _learn(self, key: str, value: Any) -> None:
        match key, value:
            case "session_config", Mapping():
                self.config = self._fields_of(key, value, SessionConfig)
            case "title", str():
                self.title = value
            case "compaction", Mapping():
                self._compact(value)
            case "tool_started", {"call_id": str() as call_id}:
                self.started.add(clean_value(call_id))
            case "turn_started", {"turn_id": str() as turn_id}:
                self._begin_turn(turn_id, value)
            case "turn_ended", {"turn_id": str() as turn_id}:
                self._end_turn(turn_id, value)
            case "sequence", Mapping():
                self._mark(value)
            case "session_opened", {"epoch": int() as epoch}:
                self.epoch = max(self.epoch, epoch)
            case "memory_mark", {"seq": int() as seq}:
                self.memory_mark = max(self.memory_mark, seq)
            case "step_ended", {"turn_id": str() as turn_id}:
                self._end_step(turn_id, value)
            case _ if key in _KNOWN:
                self.problems.append(f"{key} is {_shown(value)}")

    def _compact(self, value: Mapping[str, Any]) -> None:
        record = _record(value)
        if record is None:
            # What it stood for is in the log in full.
            self.problems.append(f"compaction is {_shown(value)}")
        else:
            # Of what was reported only the ratio is true of a history that was replaced.
            self.record, self.meter = record, {key: self.meter[key] for key in self.meter if key == "ratio"}
            kept = record.messages
            left = [(at, cause) for at, cause in record.unanswered if at in range(len(kept))]
            self.unanswered = {at - len(kept): (kept[at], cause) for at, cause in left}
            self.newest, self.at = (kept[-1], -1) if kept else (None, 0)

    def _begin_turn(self, turn_id: str, value: Mapping[str, Any]) -> None:
        # The larger one: a log that was compacted or copied may begin in the middle.
        self.turns = max(self.turns + 1, _number(value, "number"))
        self._mark(value)
        continued = self.begun.get(str(value.get("continues")), LastTurn(turn_id))
        turn = attrs.evolve(continued, turn_id=turn_id, status=None)
        if value.get("number") == 0:
            # Stopped while it waited in line behind the one that runs: it never began, and that one goes on.
            self.begun[turn_id] = turn
            return
        self._crash()
        self.last_turn = turn
        self._update(turn)

    def _end_turn(self, turn_id: str, value: Mapping[str, Any]) -> None:
        self._mark(value)
        # Added up from the turns, since a total that is stored once would be lost with the crash that it is for.
        if value.get("usage") is not None:
            self.usage += self._fields_of("usage", value["usage"], Usage)
        if isinstance(meter := value.get("meter"), Mapping):
            self.meter = meter
        status = _structured(value.get("status"), TurnStatus)
        if status is None:
            self.problems.append(f"status is {_shown(value.get('status'))}")
            status = TurnStatus.FAILED
        if (turn := self.begun.get(turn_id)) is None:
            return
        if status is not TurnStatus.COMPLETED:
            self._leave_unanswered(turn, status.value)
        self._update(attrs.evolve(turn, status=status))

    def _end_step(self, turn_id: str, value: Mapping[str, Any]) -> None:
        last, outcome = self.last_turn, _structured(value, StepOutcome)
        if outcome is None:
            self.problems.append(f"step_ended is {_shown(value)}")
        if last is None or last.turn_id != turn_id or outcome is None:
            return
        # By index: a step that a crash had stored twice counts once.
        steps = {step.index: step for step in (*last.steps, outcome)}
        ordered = tuple(steps[index] for index in sorted(steps))
        self._update(attrs.evolve(last, pipeline=value.get("pipeline"), steps=ordered))

    def _fields_of(self, key: str, value: Any, kind: type[T]) -> T:
        """What of ``value`` can be read as a ``kind``, every field of which has a default."""
        found = _structured(value, kind)
        if found is not None:
            return found
        fields = [field.name for field in attrs.fields(kind)]  # type: ignore[arg-type]  # an attrs class
        if not isinstance(value, Mapping):
            self.problems.append(f"{key} is {_shown(value)}")
            return kind()
        readable = {}
        for name in fields:
            if name in value and (alone := _structured({name: value[name]}, kind)) is not None:
                readable[name] = getattr(alone, name)
            elif name in value:
                self.problems.append(f"{name} of {key} is {_shown(value[name])}")
        return kind(**readable)

    def _update(self, turn: LastTurn) -> None:
        self.begun[turn.turn_id] = turn
        if self.last_turn is not None and self.last_turn.turn_id == turn.turn_id:
            self.last_turn = turn

    def _mark(self, value: Mapping[str, Any]) -> None:
        self.sequence = max(self.sequence, _number(value, "sequence"))


_KNOWN = frozenset(
    [
        *("session_config", "title", "compaction", "tool_started", "turn_started", "turn_ended"),
        *("sequence", "session_opened", "memory_mark", "step_ended"),
    ]
)
"""The keys whose values have a shape."""


def _shown(value: Any) -> str:
    text = repr(thaw(value))
    return text if len(text) <= 80 else f"{text[:80]}…"


def _number(value: Mapping[str, Any], key: str) -> int:
    number = value.get(key)
    return number if isinstance(number, int) else 0


def _structured(value: Any, kind: type[T]) -> T | None:
    """``value`` as a ``kind``, or None: one unreadable fact must not lock a whole session."""
    try:
        return converter.structure(thaw(value), kind)
    except Exception:
        return None


def _record(value: Mapping[str, Any]) -> CompactionRecord | None:
    try:
        return CompactionRecord.from_value(value)
    except ValueError:
        return None

"""The three APIs as a test writes their answers: one description, three wire formats, byte for byte.

    answer = dialect.answer(Say("Hm"), Call("c1", "act", '{"a":', '"x"}'))      # a list of events, as texts
    server.say(*cut(answer, 7))

Nothing of the code under test is used here: what a server sends is written down a second time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, ClassVar

import attrs

WHOLE = 1 << 20


def cut(events: Iterable[str], size: int) -> list[bytes]:
    """The bytes of an answer in pieces of ``size``."""
    data = "".join(events).encode()
    return [data[at : at + size] for at in range(0, len(data), size)]


def sse(value: Any, name: str = "") -> str:
    """An event of server-sent events."""
    return (f"event: {name}\n" if name else "") + f"data: {json.dumps(value, separators=(',', ':'))}\n\n"


@attrs.frozen
class Say:
    """Text, in these pieces."""

    pieces: tuple[str, ...]

    def __init__(self, *pieces: str) -> None:
        self.__attrs_init__(pieces)


@attrs.frozen
class Think:
    """Thoughts that the server wants back."""

    pieces: tuple[str, ...]

    def __init__(self, *pieces: str) -> None:
        self.__attrs_init__(pieces)


@attrs.frozen
class Call:
    """A call whose arguments come in these pieces."""

    id: str
    name: str
    pieces: tuple[str, ...]

    def __init__(self, id: str, name: str, *pieces: str) -> None:
        self.__attrs_init__(id, name, pieces)


Part = Say | Think | Call


class Chat:
    """Chat completions."""

    name = "chat"
    longest_id = 40
    mark: ClassVar = "data: [DONE]\n\n"
    noise: ClassVar = ": ping\n\n"
    option = "stream_options"
    usage_fields: ClassVar = (
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "prompt_tokens_details",
        "prompt_tokens_details.cached_tokens",
        "completion_tokens_details.reasoning_tokens",
    )

    def chunk(self, delta: Any = None, finish: Any = None, **more: Any) -> str:
        """A piece of a completion."""
        return sse({"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more})

    def parts(self, *parts: Part) -> list[str]:
        """What is said, before its end."""
        events, calls = [], 0
        for part in parts:
            match part:
                case Say(pieces):
                    events += [self.chunk({"content": piece}) for piece in pieces]
                case Think(pieces):
                    events += [self.chunk({"reasoning_content": piece}) for piece in pieces]
                case Call(id, name, pieces):
                    begun: dict[str, Any] = {"index": calls, "id": id, "function": {"name": name, "arguments": ""}}
                    events.append(self.chunk({"tool_calls": [begun]}))
                    grown = ({"index": calls, "function": {"arguments": piece}} for piece in pieces)
                    events += [self.chunk({"tool_calls": [each]}) for each in grown]
                    calls += 1
        return events

    def end(self, word: str | None = None, *, called: bool = False, usage: Any = None) -> str:
        """The event that declares the end; ``word`` is how, by default well."""
        more = {} if usage is None else {"usage": usage}
        return self.chunk(finish=word or ("tool_calls" if called else "stop"), **more)

    def answer(self, *parts: Part, end: str | None = None, usage: Any = None) -> list[str]:
        """A whole answer."""
        called = any(isinstance(part, Call) for part in parts)
        return [*self.parts(*parts), self.end(end, called=called, usage=usage), self.mark]

    def body(self, text: str) -> dict[str, Any]:
        """An answer as one object, as a server sends it that does not stream."""
        message = {"role": "assistant", "content": text}
        return {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}

    def ids(self, request: dict[str, Any]) -> tuple[list[str], list[str]]:
        """The ids of the calls and of the results in a request."""
        calls = [call["id"] for each in request["messages"] for call in each.get("tool_calls", ())]
        return calls, [each["tool_call_id"] for each in request["messages"] if each["role"] == "tool"]

    def own(self, request: dict[str, Any]) -> list[Any]:
        """What stands in a request of the thoughts that came."""
        return [each["reasoning_content"] for each in request["messages"] if "reasoning_content" in each]

    def thoughts(self, *pieces: str) -> list[Any]:
        """What ``own`` gives when these thoughts went back."""
        return ["".join(pieces)]


class Responses:
    """The Responses API."""

    name = "responses"
    longest_id = 64
    mark: ClassVar = ""
    noise: ClassVar = sse({"type": "keepalive"}, "keepalive")
    option = "include"
    usage_fields: ClassVar = (
        "input_tokens",
        "output_tokens",
        "total_tokens",
        "input_tokens_details",
        "input_tokens_details.cached_tokens",
        "output_tokens_details.reasoning_tokens",
    )

    def event(self, kind: str, **fields: Any) -> str:
        """An event with its name."""
        return sse({"type": f"response.{kind}", **fields}, f"response.{kind}")

    def parts(self, *parts: Part) -> list[str]:
        """What is said, before its end."""
        events = [self.event("created", response={"status": "in_progress", "error": None})]
        for place, part in enumerate(parts):
            match part:
                case Say(pieces):
                    events += [self.event("output_text.delta", output_index=place, delta=piece) for piece in pieces]
                    content = [{"type": "output_text", "text": "".join(pieces)}]
                    item: dict[str, Any] = {"type": "message", "content": content}
                case Think(pieces):
                    kind = "reasoning_summary_text.delta"
                    events += [self.event(kind, output_index=place, delta=piece) for piece in pieces]
                    summary = [{"type": "summary_text", "text": "".join(pieces)}]
                    item = {"type": "reasoning", "id": f"rs_{place}", "summary": summary, "encrypted_content": "ENC"}
                case Call(id, name, pieces):
                    item = {"type": "function_call", "id": f"fc_{place}", "call_id": id, "name": name}
                    events.append(self.event("output_item.added", output_index=place, item=item | {"arguments": ""}))
                    kind, own = "function_call_arguments.delta", {"item_id": item["id"], "output_index": place}
                    events += [self.event(kind, delta=piece, **own) for piece in pieces]
                    item |= {"arguments": "".join(pieces)}
            events.append(self.event("output_item.done", output_index=place, item=item))
        return events

    def end(self, word: str | None = None, *, called: bool = False, usage: Any = None) -> str:
        """The event that declares the end; ``word`` is why it is incomplete."""
        response: dict[str, Any] = {"status": "completed", "error": None}
        if word is not None:
            response = {"status": "incomplete", "incomplete_details": {"reason": word}, "error": None}
        if usage is not None:
            response["usage"] = usage
        return self.event(str(response["status"]), response=response)

    def answer(self, *parts: Part, end: str | None = None, usage: Any = None) -> list[str]:
        """A whole answer."""
        return [*self.parts(*parts), self.end(end, usage=usage)]

    def body(self, text: str) -> dict[str, Any]:
        """An answer as one object."""
        output = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}]
        return {"object": "response", "status": "completed", "error": None, "output": output}

    def ids(self, request: dict[str, Any]) -> tuple[list[str], list[str]]:
        """The ids of the calls and of the results in a request."""
        found: dict[str, list[str]] = {"function_call": [], "function_call_output": []}
        for item in request["input"]:
            if item.get("type") in found:
                found[item["type"]].append(item["call_id"])
        return found["function_call"], found["function_call_output"]

    def own(self, request: dict[str, Any]) -> list[Any]:
        """What stands in a request of the thoughts that came."""
        return [item for item in request["input"] if item.get("type") == "reasoning"]

    def thoughts(self, *pieces: str) -> list[Any]:
        """What ``own`` gives when these thoughts went back."""
        summary = [{"type": "summary_text", "text": "".join(pieces)}]
        return [{"type": "reasoning", "id": "rs_0", "summary": summary, "encrypted_content": "ENC"}]


class Messages:
    """The Messages API."""

    name = "messages"
    longest_id = 64
    mark: ClassVar = sse({"type": "message_stop"}, "message_stop")
    noise: ClassVar = sse({"type": "ping"}, "ping")
    option = "cache_control"
    usage_fields: ClassVar = (
        "input_tokens",
        "output_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "output_tokens_details",
        "output_tokens_details.thinking_tokens",
    )

    def event(self, kind: str, **fields: Any) -> str:
        """An event with its name."""
        return sse({"type": kind, **fields}, kind)

    def delta(self, index: int, **delta: Any) -> str:
        """A piece of a block."""
        return self.event("content_block_delta", index=index, delta=delta)

    def parts(self, *parts: Part) -> list[str]:
        """What is said, before its end."""
        events = [self.event("message_start", message={"role": "assistant", "content": [], "usage": {}})]
        for at, part in enumerate(parts):
            match part:
                case Say(pieces):
                    start: dict[str, Any] = {"type": "text", "text": ""}
                    grown = [self.delta(at, type="text_delta", text=piece) for piece in pieces]
                case Think(pieces):
                    start = {"type": "thinking", "thinking": "", "signature": ""}
                    grown = [self.delta(at, type="thinking_delta", thinking=piece) for piece in pieces]
                    grown.append(self.delta(at, type="signature_delta", signature="SIG"))
                case Call(id, name, pieces):
                    start = {"type": "tool_use", "id": id, "name": name, "input": {}}
                    grown = [self.delta(at, type="input_json_delta", partial_json=piece) for piece in pieces]
            events.append(self.event("content_block_start", index=at, content_block=start))
            events += [*grown, self.event("content_block_stop", index=at)]
        return events

    def end(self, word: str | None = None, *, called: bool = False, usage: Any = None) -> str:
        """The event that declares the end; ``word`` is how, by default well."""
        more = {} if usage is None else {"usage": usage}
        return self.event(
            "message_delta", delta={"stop_reason": word or ("tool_use" if called else "end_turn")}, **more
        )

    def answer(self, *parts: Part, end: str | None = None, usage: Any = None) -> list[str]:
        """A whole answer."""
        called = any(isinstance(part, Call) for part in parts)
        return [*self.parts(*parts), self.end(end, called=called, usage=usage), self.mark]

    def body(self, text: str) -> dict[str, Any]:
        """An answer as one object."""
        content = [{"type": "text", "text": text}]
        return {"type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn"}

    def ids(self, request: dict[str, Any]) -> tuple[list[str], list[str]]:
        """The ids of the calls and of the results in a request."""
        blocks = [block for each in request["messages"] for block in each["content"]]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        return [block["id"] for block in blocks if block["type"] == "tool_use"], results

    def own(self, request: dict[str, Any]) -> list[Any]:
        """What stands in a request of the thoughts that came."""
        blocks = [block for each in request["messages"] for block in each["content"]]
        return [block for block in blocks if block["type"] == "thinking"]

    def thoughts(self, *pieces: str) -> list[Any]:
        """What ``own`` gives when these thoughts went back."""
        return [{"type": "thinking", "thinking": "".join(pieces), "signature": "SIG"}]


Dialect = Chat | Responses | Messages
DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (Chat(), Responses(), Messages())}

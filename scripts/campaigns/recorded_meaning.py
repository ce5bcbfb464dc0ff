"""What a recorded answer of a model server means, read by the APIs' documents and by nothing of youyou.

    meaning = meaning_of(recording)      # text, reasoning, calls, usage, and what the next request has to hold

A second reading of the same bytes, for `recorded_traffic.py` to compare with what the adapters make of them. It takes a
recording as a whole and knows no state between events, which is what keeps it short enough to be believed.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs


@attrs.frozen
class Recording:
    """One answer of a server, as it was recorded; a line of JSON in a folder of them, the body in base64."""

    number: int
    project: str
    path: str
    vendor: str
    api: str  # chat, responses or messages
    kind: str  # stream, whole or error
    status: int
    headers: Mapping[str, str]
    body: bytes = attrs.field(repr=False)


def recordings(folder: Path) -> Iterator[Recording]:
    """Those in the folder's files, in order."""
    number = 0
    for file in sorted(folder.glob("*.jsonl")):
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                told = json.loads(line)
                body = base64.b64decode(told.pop("body"))
                names = ("project", "path", "vendor", "api", "kind", "status", "headers")
                yield Recording(number, *(told[name] for name in names), body)
                number += 1


@attrs.define
class Meaning:
    """What it says."""

    text: str = ""
    reasoning: str = ""
    calls: list[tuple[str, str, Any]] = attrs.field(factory=list)  # id, name, arguments
    usage: dict[str, Any] | None = None
    reason: str | None = None
    ended: bool = False
    error: str | None = None
    blocks: list[tuple[Any, ...]] = attrs.field(factory=list)  # the content of the next request, in its order
    wanted_back: list[tuple[str, str]] = attrs.field(factory=list)  # what only the server understands, and its field
    not_ours: str | None = None  # asked for with something that youyou never asks for


def meaning_of(recording: Recording) -> Meaning:
    """What the body says."""
    if recording.kind == "error":
        return Meaning(error=words_of(recording.body))
    if recording.kind == "stream":
        return _READERS[recording.api](list(events_of(recording.body)), False)
    return _READERS[recording.api]([json.loads(recording.body)], True)


def events_of(body: bytes) -> Iterator[Any]:
    """The objects in a body of server-sent events; None for ``[DONE]``, after which nothing counts."""
    data: list[str] = []
    for line in [*re.split("\r\n|\n|\r", body.decode("utf-8", "replace").lstrip("\ufeff")), ""]:
        if line.startswith("error:"):  # llama.cpp
            yield json.loads(line.removeprefix("error:"))
            return
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            joined, data = "\n".join(data), []
            if joined.strip() == "[DONE]":
                yield None
                return
            if joined.strip():
                yield json.loads(joined)


def words_of(body: bytes) -> str:
    """The server's own words in the body of an error."""
    text = body.decode("utf-8", "replace")
    try:
        told = json.loads(text)
    except ValueError:
        return text.strip()
    told = told[0] if isinstance(told, list) and told else told
    return _words(told) or text.strip()


def _words(told: Any) -> str:
    if isinstance(told, str):
        return told
    if not isinstance(told, dict):
        return ""
    raw = told.get("metadata", {}).get("raw") if isinstance(told.get("metadata"), dict) else None
    if isinstance(raw, str) and raw:
        return words_of(raw.encode())  # OpenRouter: what the server behind it said
    return next((words for name in ("error", "message", "detail") if (words := _words(told.get(name)))), "")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _strings(inner)


# Chat completions


def _chat(objects: list[Any], whole: bool) -> Meaning:
    meaning, calls, refused = Meaning(ended=whole), list[dict[str, Any]](), False
    for told in objects:
        if told is None:
            meaning.ended = True
            continue
        if told.get("error"):
            meaning.error = _words(told)
            return meaning
        groq = told.get("x_groq")
        meaning.usage = told.get("usage") or (groq or {}).get("usage") or meaning.usage
        for choice in told.get("choices") or ():
            if choice.get("index"):
                continue  # of several answers the first one counts
            first, second = ("message", "delta") if whole else ("delta", "message")
            part = choice.get(first) or choice.get(second) or {}
            text, reasoning = _chat_content(part.get("content"), meaning)
            if part.get("refusal"):
                text, refused = text + part["refusal"], True
            meaning.text += text
            meaning.reasoning += reasoning + _chat_reasoning(part, meaning)
            for piece in part.get("tool_calls") or ():
                _chat_piece(calls, piece, meaning)
            if part.get("function_call"):
                _chat_piece(calls, {"function": part["function_call"]}, meaning)
            if choice.get("finish_reason"):
                meaning.reason, meaning.ended = choice["finish_reason"], True
    if refused and meaning.reason in (None, "stop"):
        meaning.reason = "refusal"
    meaning.calls = [(call["id"], call["name"], arguments_of(call["text"])) for call in calls]
    meaning.blocks = [("text", meaning.text)] if meaning.text else []
    meaning.blocks += [("call", *call) for call in meaning.calls]
    return meaning


def _chat_content(content: Any, meaning: Meaning) -> tuple[str, str]:
    """Text and reasoning in a content: a text, a list of parts (Mistral), or the object that was asked for."""
    if isinstance(content, str):
        return content, ""
    if isinstance(content, dict):
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")), ""
    text = reasoning = ""
    for part in content or ():
        if part.get("type") == "text":
            text += part.get("text") or ""
        elif part.get("type") == "thinking":
            said = "".join(_strings([inner.get("text") for inner in part["thinking"]]))
            reasoning += said
            meaning.wanted_back += [("thinking", said)] if said else []
    return text, reasoning


def _chat_reasoning(part: dict[str, Any], meaning: Meaning) -> str:
    """The reasoning of a delta; what the server wants back is noted."""
    shown = ""
    for name in ("reasoning_content", "reasoning"):
        if isinstance(part.get(name), str) and part[name]:
            shown = shown or part[name]
            meaning.wanted_back.append((name, part[name]))
    for detail in part.get("reasoning_details") or ():
        meaning.wanted_back += [
            ("reasoning_details", detail[name]) for name in ("signature", "data") if detail.get(name)
        ]
        shown = shown or detail.get("text") or detail.get("summary") or ""
    meaning.wanted_back += [("extra_content", text) for text in _strings(part.get("extra_content"))]
    return shown


def _chat_piece(calls: list[dict[str, Any]], piece: dict[str, Any], meaning: Meaning) -> None:
    """Add a piece of a call to the one that it belongs to."""
    if piece.get("custom"):
        meaning.not_ours = "a custom tool"
    place, call_id, function = piece.get("index"), piece.get("id") or "", piece.get("function") or {}
    meaning.wanted_back += [("extra_content", text) for text in _strings(piece.get("extra_content"))]
    call = next((call for call in reversed(calls) if place is not None and call["place"] == place), None)
    if call is None and place is None and calls and not call_id and not function.get("name"):
        call = calls[-1]
    if call is not None and call_id and call["id"] and call_id != call["id"]:
        call = None
    if call is None:
        calls.append(call := {"place": place, "id": call_id, "name": "", "text": ""})
    call["name"] = call["name"] or function.get("name") or ""
    text = function.get("arguments")
    call["text"] += text if isinstance(text, str) else "" if text is None else json.dumps(text)


# Anthropic's messages


def _messages(objects: list[Any], whole: bool) -> Meaning:
    meaning, blocks, counted = Meaning(ended=whole), list[dict[str, Any]](), dict[str, Any]()
    at: dict[int, dict[str, Any]] = {}
    for told in filter(None, objects):
        kind = "message_start" if whole else told.get("type")
        if told.get("error"):
            meaning.error = _words(told)
            return meaning
        if kind == "message_start":
            message = (told if whole else told.get("message")) or {}
            counted |= {name: value for name, value in (message.get("usage") or {}).items() if value is not None}
            meaning.reason = message.get("stop_reason") or meaning.reason
            blocks += message.get("content") or ()
            at |= dict(enumerate(message.get("content") or ()))
        elif kind == "content_block_start":
            at[told["index"]] = block = dict(told["content_block"], _json="")
            blocks.append(block)
        elif kind == "content_block_delta":
            delta = told["delta"]
            for name in ("text", "thinking", "signature", "partial_json"):
                if name in delta:
                    field = "_json" if name == "partial_json" else name
                    at[told["index"]][field] = (at[told["index"]].get(field) or "") + delta[name]
        elif kind == "message_delta":
            counted |= {name: value for name, value in (told.get("usage") or {}).items() if value is not None}
            meaning.reason = told["delta"].get("stop_reason") or meaning.reason
            meaning.ended = meaning.ended or meaning.reason is not None
        elif kind == "message_stop":
            meaning.ended = True
    for block in blocks:
        _messages_block(block, meaning)
    meaning.usage = counted or None
    return meaning


def _messages_block(block: dict[str, Any], meaning: Meaning) -> None:
    match block["type"]:
        case "text":
            meaning.text += block.get("text") or ""
            meaning.blocks.append(("text", block.get("text") or ""))
        case "thinking":
            meaning.reasoning += block.get("thinking") or ""
            meaning.blocks.append(("thinking", block.get("thinking") or "", block.get("signature") or ""))
        case "redacted_thinking":
            meaning.blocks.append(("redacted_thinking", block["data"]))
        case "tool_use":
            given = arguments_of(block["_json"]) if block.get("_json") else block.get("input") or {}
            meaning.calls.append((block["id"], block["name"], given))
            meaning.blocks.append(("call", *meaning.calls[-1]))


# OpenAI's responses


def _responses(objects: list[Any], whole: bool) -> Meaning:
    meaning, items, deltas = Meaning(ended=whole), list[dict[str, Any]](), {"text": "", "reasoning": ""}
    final: dict[str, Any] = objects[0] if whole else {}
    for told in filter(None, objects if not whole else ()):
        kind = told.get("type")
        if kind in ("error", "response.failed"):
            failed = told.get("error") or told.get("response") or told
            meaning.error = _words(failed) or "gave up"
            return meaning
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            deltas["text"] += told.get("delta") or ""
        elif kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            deltas["reasoning"] += told.get("delta") or ""
        elif kind == "response.output_item.done":
            items.append(told["item"])
        elif kind in ("response.completed", "response.incomplete"):
            final, meaning.ended = told["response"], True
    if whole and final.get("error"):
        meaning.error = _words(final)
        return meaning
    for item in items or final.get("output") or ():
        _responses_item(item, meaning)
    # The end of an item says all of its text; deltas alone count where the server tells no items.
    meaning.text = meaning.text or deltas["text"]
    meaning.reasoning = meaning.reasoning or deltas["reasoning"]
    meaning.usage = final.get("usage")
    meaning.reason = meaning.reason or (final.get("incomplete_details") or {}).get("reason") or final.get("status")
    return meaning


def _responses_item(item: dict[str, Any], meaning: Meaning) -> None:
    match item.get("type"):
        case "function_call":
            meaning.calls.append((item["call_id"], item["name"], arguments_of(item.get("arguments") or "")))
            meaning.blocks.append(("call", *meaning.calls[-1]))
        case "message":
            parts = item.get("content") or ()
            text = "".join(part.get("text") or part.get("refusal") or "" for part in parts)
            meaning.text += text
            meaning.blocks.append(("text", text))
            if any(part.get("refusal") for part in parts):
                meaning.reason = "refusal"
        case "reasoning":
            texts = [part.get("text") or "" for name in ("summary", "content") for part in item.get(name) or ()]
            meaning.reasoning += "".join(texts)
            if item.get("encrypted_content"):
                meaning.blocks.append(("reasoning", item["encrypted_content"]))
            elif item.get("content"):
                meaning.blocks.append(("reasoning", "".join(texts)))
        case "custom_tool_call":
            meaning.not_ours = "a custom tool"


_READERS = {"chat": _chat, "messages": _messages, "responses": _responses}


def arguments_of(text: str) -> Any:
    """The object in ``text``, or the text where it holds none. Nothing and null mean an empty object."""
    if text.strip() in ("", "null"):
        return {}
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, dict) else text


def tokens_of(api: str, usage: Mapping[str, Any] | None) -> tuple[int, int, int, int, int] | None:
    """Input, output, read from a cache, written to one, reasoning: each a part of input or of output."""
    if not usage:
        return None

    def first(*paths: str) -> int:
        for path in paths:
            value: Any = usage
            for name in path.split("."):
                value = value.get(name) if isinstance(value, dict) else None
            if value:
                return int(value)
        return 0

    if api == "messages":
        read, written = first("cache_read_input_tokens"), first("cache_creation_input_tokens")
        thinking = first("output_tokens_details.thinking_tokens")
        return first("input_tokens") + read + written, first("output_tokens"), read, written, thinking
    sent, made = first("prompt_tokens", "input_tokens"), first("completion_tokens", "output_tokens")
    thinking = first("completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens")
    total = first("total_tokens")
    if thinking and total > sent + made:
        made = total - sent  # xAI and Gemini count reasoning beside the output
    read = first("prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens", "prompt_cache_hit_tokens")
    written = first("prompt_tokens_details.cache_write_tokens", "input_tokens_details.cache_write_tokens")
    return sent, made, read, written, thinking


def merged(blocks: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Blocks with neighbouring texts as one: where a server ends one and begins the next means nothing."""
    out: list[tuple[Any, ...]] = []
    for block in blocks:
        if block[0] == "text" and out and out[-1][0] == "text":
            out[-1] = ("text", out[-1][1] + block[1])
        else:
            out.append(block)
    return [block for block in out if block[0] != "text" or block[1].strip()]

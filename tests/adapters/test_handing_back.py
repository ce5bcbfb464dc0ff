"""What a server said in one turn stands in the next request as that server needs it, over real HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest
import youyou as y
from youyou.adapters.anthropic import AnthropicProvider
from youyou.adapters.openai import OpenAIProvider


def whole(*values: Any) -> bytes:
    """Events of a stream."""
    return b"".join(f"data: {json.dumps(value)}\n\n".encode() for value in values)


async def second_request(server: Any, provider: Any, said: bytes) -> dict[str, Any]:
    """What is asked in the second turn, when ``said`` answered the first one."""
    server.say(said)
    server.always(said)
    builder = y.AgentBuilder(y.AgentConfig("m")).register_model_provider(provider)
    async with builder.build() as agent, await agent.new_session() as session:
        for _ in range(2):
            assert (await (await session.send_message("go")).result()).error is None
    body: dict[str, Any] = server.seen[1].body
    return body


def thought(name: str, sealed: str) -> dict[str, Any]:
    """An item of reasoning."""
    return {"type": "reasoning", "id": name, "summary": [], "encrypted_content": sealed}


SAID = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hi"}]}


@pytest.mark.parametrize("told", ["early", "late", "twice"])
@pytest.mark.parametrize("ids", [("r", "r"), ("r", "s"), ("", "")])
async def test_items_of_reasoning_go_back_each_once(server: Any, told: str, ids: tuple[str, str]) -> None:
    """Also where the server gives them one id, as xAI does, or none."""
    items = [thought(ids[0], "A"), thought(ids[1], "B"), SAID]
    early = [{"type": "response.output_item.done", "item": item, "output_index": at} for at, item in enumerate(items)]
    response = {"status": "completed", "output": [] if told == "early" else items}
    end = {"type": "response.completed", "response": response}
    provider = OpenAIProvider(["m"], base_url=f"{server.url}/v1", api_key="k", api="responses")
    body = await second_request(server, provider, whole(*([] if told == "late" else early), end))
    sealed = [item["encrypted_content"] for item in body["input"] if item.get("type") == "reasoning"]
    assert ["A", "B"] == sealed


async def test_white_space_between_texts_with_citations_is_kept(server: Any) -> None:
    """The API takes no block of white space alone; the words on both sides must not grow together all the same."""
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}}
    blocks = [search, *({"type": "text", "text": text} for text in ("One.", " ", "\n", "Two.", " "))]
    starts = [{"type": "content_block_start", "index": at, "content_block": block} for at, block in enumerate(blocks)]
    ended = [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}]
    body = await second_request(
        server,
        AnthropicProvider(["m"], base_url=server.url, api_key="k"),
        whole({"type": "message_start", "message": {"usage": {}}}, *starts, *ended),
    )
    texts = [block["text"] for block in body["messages"][1]["content"] if block["type"] == "text"]
    assert ["One.", " \nTwo."] == texts

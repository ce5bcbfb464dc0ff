"""langgraph 1.2.24, langchain 1.5.2: drained while the model calls a tool. The next request has a call left open.

pip install langgraph==1.2.24 langchain==1.5.2
"""

import asyncio

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import RunControl


class Calling(BaseChatModel):
    @property
    def _llm_type(self):
        return "calling"

    def bind_tools(self, *_, **__):
        return self

    def _generate(self, *_, **__):
        raise NotImplementedError

    async def _astream(self, messages, *_, **__):
        print("asked with:", [message.type for message in messages])
        if len(messages) > 1:
            yield ChatGenerationChunk(message=AIMessageChunk(content="done", chunk_position="last"))
            return
        call = {"name": "look", "args": "{}", "id": "c1", "index": 0, "type": "tool_call_chunk"}
        yield ChatGenerationChunk(message=AIMessageChunk(content="let me look", tool_call_chunks=[call]))
        yield ChatGenerationChunk(message=AIMessageChunk(content="", chunk_position="last"))


@tool
async def look() -> str:
    "Looks."
    return "ok"


async def send(graph, text, stop):
    control = RunControl()
    asked = {"messages": [{"role": "user", "content": text}]}
    config = {"configurable": {"thread_id": "t"}}
    try:
        async for _ in graph.astream(asked, config, stream_mode="messages", control=control):
            if stop:
                control.request_drain()
    except Exception as error:
        print("ended with", type(error).__name__)


async def main():
    graph = create_agent(Calling(), [look], checkpointer=InMemorySaver())
    await send(graph, "first", stop=True)
    await send(graph, "next", stop=False)


asyncio.run(main())

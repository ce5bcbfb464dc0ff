"""openai-agents 0.24.0: `result.cancel()` after a tool has written. The session knows neither the call nor its result.

pip install openai-agents==0.24.0
"""

import asyncio

from agents import Agent, Model, Runner, SQLiteSession, function_tool, set_tracing_disabled
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputItemDoneEvent,
)

set_tracing_disabled(True)
outside, written = [], asyncio.Event()


class Calling(Model):
    async def get_response(self, *_, **__):
        raise NotImplementedError

    async def stream_response(self, *_, **__):
        call = ResponseFunctionToolCall(id="f1", call_id="c1", type="function_call", name="write", arguments="{}")
        yield ResponseOutputItemDoneEvent(
            type="response.output_item.done", item=call, output_index=0, sequence_number=0
        )
        response = Response(
            id="r1",
            created_at=0,
            model="m",
            object="response",
            output=[call],
            tool_choice="auto",
            tools=[],
            parallel_tool_calls=True,
        )
        yield ResponseCompletedEvent(type="response.completed", response=response, sequence_number=1)


@function_tool
async def write() -> str:
    outside.append("written")
    written.set()
    await asyncio.sleep(0.1)
    return "ok"


async def main():
    session = SQLiteSession("s")
    result = Runner.run_streamed(Agent(name="a", model=Calling(), tools=[write]), "first", session=session)

    async def stop():
        await written.wait()
        result.cancel()

    stopping = asyncio.create_task(stop())
    async for _ in result.stream_events():
        pass
    await stopping
    print("effects:", outside)
    print("session:", await session.get_items())


asyncio.run(main())

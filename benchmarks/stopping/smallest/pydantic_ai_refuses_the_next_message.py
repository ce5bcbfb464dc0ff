"""pydantic-ai 2.68.0: stopped when a tool's result is shown. The history of the stop refuses the next message.

pip install pydantic-ai-slim==2.68.0
"""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.exceptions import RunCancelled, UserError
from pydantic_ai.messages import FunctionToolResultEvent, repair_messages
from pydantic_ai.models.function import DeltaToolCall, FunctionModel


async def model(messages, _):
    if len(messages) > 1:
        yield "done"
    else:
        yield {0: DeltaToolCall(name="write", json_args="{}", tool_call_id="c1")}


agent, outside = Agent(FunctionModel(stream_function=model)), []


@agent.tool_plain
async def write() -> str:
    outside.append(1)
    return "written"


async def main():
    try:
        async with agent.run_stream_events("first") as events:
            async for event in events:
                if isinstance(event, FunctionToolResultEvent):
                    events.cancel()
    except RunCancelled as stopped:
        history = stopped.all_messages()
    print("effects:", outside, "history:", [[type(part).__name__ for part in m.parts] for m in history])
    try:
        async with agent.run_stream_events("next", message_history=history) as events:
            async for _ in events:
                pass
    except UserError as error:
        print("UserError:", error)
    print("what the error names:", [[getattr(p, "content", "") for p in m.parts] for m in repair_messages(history)])
    async with agent.run_stream_events(message_history=history) as events:
        async for _ in events:
            pass
    print("effects, after running it without a new prompt:", outside)


asyncio.run(main())

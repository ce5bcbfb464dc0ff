"""autogen-agentchat 0.7.5: `token.cancel()` while a tool runs. The run never ends, and a call is left without a result.

pip install autogen-agentchat==0.7.5
"""

import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import ChatCompletionClient, CreateResult, ModelFamily, RequestUsage

INFO = {
    "vision": False,
    "function_calling": True,
    "json_output": False,
    "family": ModelFamily.UNKNOWN,
    "structured_output": False,
}
USAGE = RequestUsage(prompt_tokens=1, completion_tokens=1)


class Model(ChatCompletionClient):
    component_type = "model"
    component_config_schema = None
    capabilities = model_info = property(lambda self: INFO)
    asked = 0

    async def create_stream(self, messages, **_):
        raise NotImplementedError
        yield

    async def create(self, messages, **_):
        self.asked += 1
        if self.asked > 1:
            print("the next request:", [type(message).__name__ for message in messages])
            return CreateResult(finish_reason="stop", content="done", usage=USAGE, cached=False)
        call = FunctionCall(id="c1", name="slow", arguments="{}")
        return CreateResult(finish_reason="function_calls", content=[call], usage=USAGE, cached=False)

    async def close(self):
        pass

    def actual_usage(self):
        return USAGE

    def total_usage(self):
        return USAGE

    def count_tokens(self, messages, **_):
        return 1

    def remaining_tokens(self, messages, **_):
        return 1_000


async def slow() -> str:
    "Takes a second."
    await asyncio.sleep(1)
    return "ok"


async def main():
    agent, token = AssistantAgent("a", model_client=Model(), tools=[slow]), CancellationToken()
    run = asyncio.create_task(agent.run(task="first", cancellation_token=token))
    await asyncio.sleep(0.3)
    token.cancel()
    done, _ = await asyncio.wait({run}, timeout=5)
    print("ended" if done else "still running 5 s after token.cancel(), 4 s after the tool's own end")
    run.cancel()
    await asyncio.wait({run})
    await agent.run(task="next")


asyncio.run(main())

"""strands-agents 1.62.0: `agent.cancel()` while an answer streams. What the user has seen is not in the history.

pip install strands-agents==1.62.0
"""

import asyncio

from strands import Agent
from strands.models import Model


class Talking(Model):
    def update_config(self, **_):
        pass

    def get_config(self):
        return {}

    async def structured_output(self, *_, **__):
        raise NotImplementedError
        yield

    async def stream(self, messages, *_, **__):
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        for number in range(20):
            await asyncio.sleep(0.01)
            yield {"contentBlockDelta": {"delta": {"text": f"w{number} "}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


async def main():
    agent, seen = Agent(model=Talking(), callback_handler=None), ""
    async for event in agent.stream_async("first"):
        seen += event.get("data", "")
        if "w5" in seen:
            agent.cancel()
    print("seen:", seen)
    print("history:", agent.messages)


asyncio.run(main())

"""What the hosts of `ray_hosts.py` run: a model that does what it is told, and a tool that notes each start."""

from __future__ import annotations

from typing import Annotated

import trio
import youyou

TTL_MS = 3_000


class Obedient:
    """Answers "say N" with N pieces, "slow N" with N pieces of 20 ms each, "tool PATH" with a call."""

    id = "obedient"

    def models(self):
        """One model."""
        return [youyou.ModelInfo("obedient", "Obedient", 1_000_000)]

    async def chat(self, request):
        """Do what the last message says."""
        last = request.messages[-1]
        if isinstance(last, youyou.UserMessage):
            words = youyou.messages.content.text_of(last.content).split()
            if words[0] == "tool":
                yield youyou.ToolCall(f"call-{words[3]}", "note", {"path": words[1], "seconds": float(words[2])})
                yield youyou.Done()
                return
            for number in range(int(words[1])):
                if words[0] == "slow":
                    await trio.sleep(0.02)
                yield youyou.TextDelta(f"{number} ")
        else:
            yield youyou.TextDelta("done")
        yield youyou.Done()


@youyou.tool(mutating=True)
async def note(path: Annotated[str, "a file"], seconds: float, mark: str) -> str:
    """Write a line, then take some time."""
    async with await trio.Path(path).open("a") as file:
        await file.write(f"{mark}\n")
    await trio.sleep(seconds)
    return "noted"


def make_builder():
    """One session's builder."""
    config = youyou.AgentConfig("obedient", notices=youyou.Notices.english(), claim_ttl_ms=TTL_MS)
    return youyou.AgentBuilder(config).register_model_provider(Obedient()).register_tool(note)

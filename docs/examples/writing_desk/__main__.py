"""``python -m writing_desk``: serve the page at http://127.0.0.1:8000, until Ctrl-C. Needs ``youyou[web]``."""

from __future__ import annotations

import argparse

import trio
import youyou
from hypercorn.config import Config
from hypercorn.trio import serve

from .agent import desk_agent
from .model import StandIn
from .web import Front, served_at


def provider_for(model: str | None, window: int) -> youyou.ModelProvider:
    """OpenAI's, or a compatible server's, for a model that was named; else the stand-in."""
    if model is None:
        return StandIn()
    from youyou.adapters.openai import OpenAIProvider

    return OpenAIProvider(models=[youyou.ModelInfo(model, model, window)])


async def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="writing_desk", description="A writing desk with an agent.")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--model", help="a model of OpenAI (or of OPENAI_BASE_URL); without it a stand-in answers")
    parser.add_argument("--window", type=int, default=128_000, help="its context window, in tokens")
    told = parser.parse_args()
    config = Config()
    config.bind = [f"127.0.0.1:{told.port}"]
    async with desk_agent(provider_for(told.model, told.window)).build() as agent:
        await serve(Front(agent, served_at(told.port)), config)


if __name__ == "__main__":
    trio.run(main)

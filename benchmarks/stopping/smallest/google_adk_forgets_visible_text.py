"""google-adk 2.13.0: `abort_signal.set()` while an answer streams. What the user has seen is not in the session.

pip install google-adk==2.13.0
"""

import asyncio

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types


class Talking(BaseLlm):
    model: str = "talking"

    async def generate_content_async(self, llm_request, stream=False):
        said = ""
        for number in range(20):
            await asyncio.sleep(0.01)
            said += f"w{number} "
            content = types.Content(role="model", parts=[types.Part(text=f"w{number} ")])
            yield LlmResponse(content=content, partial=True)
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=said)]), partial=False)


async def main():
    runner = InMemoryRunner(agent=LlmAgent(name="a", model=Talking()), app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    abort, seen = asyncio.Event(), ""
    async for event in runner.run_async(
        user_id="u",
        session_id=session.id,
        run_config=RunConfig(streaming_mode=StreamingMode.SSE),
        abort_signal=abort,
        new_message=types.Content(role="user", parts=[types.Part(text="first")]),
    ):
        if event.content and event.partial:
            seen += "".join(part.text or "" for part in event.content.parts)
        if "w5" in seen:
            abort.set()
    stored = await runner.session_service.get_session(app_name="app", user_id="u", session_id=session.id)
    print("seen:", seen)
    print("session:", [(event.author, event.content and event.content.parts[0].text) for event in stored.events])


asyncio.run(main())

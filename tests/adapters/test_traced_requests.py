"""The span of a request to a real server says what it cost and how it ended, no matter who reads the answer."""

from __future__ import annotations

from typing import Any

import pytest
import youyou as y

from .dialects import Dialect, Say


async def test_a_request_has_one_span_with_its_usage_and_its_end(
    server: Any, provider: Any, dialect: Dialect, sizes: Any
) -> None:
    """For each of the three APIs."""
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from youyou.adapters.otel import Tracing

    told, tracers = InMemorySpanExporter(), sdk.TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(told))
    tracing = Tracing(agent_name="desk", tracer_provider=tracers)
    builder = y.AgentBuilder(y.AgentConfig("m1")).register_model_provider(tracing.provider(provider))
    sent, made, *_ = dialect.usage_fields
    for size in sizes:
        told.clear()
        server.stream(dialect.answer(Say("Half"), end="length", usage={sent: 12, made: 5}), size)
        async with builder.build() as agent, await agent.new_session() as session:
            await (await session.send_message("go")).result()

        (span,) = [span for span in told.get_finished_spans() if span.name == "chat m1"]
        figures = [span.attributes[f"gen_ai.usage.{name}_tokens"] for name in ("input", "output")]
        assert ([12, 5], ("length",)) == (figures, span.attributes["gen_ai.response.finish_reasons"])

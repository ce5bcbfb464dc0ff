"""A failure holds all that a drawing of it needs."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import trio
from youyou.testing import Simulation, sweep


async def talk(sim: Simulation) -> None:
    """One message that waits in a buffer, one handed over, one whose sender waits, one never taken."""
    buffered, from_buffered = trio.open_memory_channel[str](1)
    direct, from_direct = trio.open_memory_channel[str](0)

    async def speaker() -> None:
        await buffered.send("buffered")
        await buffered.send("blocked")
        await trio.sleep(2)
        await direct.send("handed")

    async def listener() -> None:
        await trio.sleep(1)
        for _ in range(2):
            await from_buffered.receive()
            await trio.sleep(0.4)
        await from_direct.receive()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(speaker)
        nursery.start_soon(listener)
    buffered.send_nowait("lost")


def test_messages_are_matched_from_sender_to_receiver():
    """Which task sent what when, and which one took it when, however it went through the channel."""
    recording = sweep(talk, cancel=None).recording

    seen = [(m.value, m.sender, m.receiver, m.sent_time, m.received_time) for m in recording.messages]
    assert [
        ("'buffered'", 1, 2, 0, 1),
        ("'blocked'", 1, 2, 0, 1.4),
        ("'handed'", 1, 2, 3, 3),
        ("'lost'", 0, None, 3, None),
    ] == [(v, s, r, round(a, 1), b and round(b, 1)) for v, s, r, a, b in seen]


def test_wake_ups_say_who_woke_whom_and_how():
    """An event and a cancel come from a task, the end of a sleep from the clock."""

    async def scenario(sim: Simulation) -> None:
        event = trio.Event()

        async def waiter() -> None:
            await event.wait()
            await trio.sleep(1)
            await trio.sleep_forever()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(waiter)
            await trio.sleep(1)
            event.set()
            await trio.sleep(5)
            nursery.cancel_scope.cancel()

    recording = sweep(scenario, cancel=None).recording

    seen = [(wake.by, wake.how) for wake in recording.wakes if wake.task == 1]
    assert [(0, "value"), (None, "deadline"), (0, "cancel")] == seen[-3:]


def test_a_message_sent_in_the_very_first_step_is_seen():
    """The recording begins with the scenario, not with its first wait."""

    async def scenario(sim: Simulation) -> None:
        send, receive = trio.open_memory_channel[str](1)
        send.send_nowait("early")
        await receive.receive()

    recording = sweep(scenario, cancel=None).recording

    assert [("'early'", 1)] == [(message.value, message.sent_step) for message in recording.messages]


def test_channels_work_as_before_after_a_recording():
    """The look-out is gone."""
    before = trio.MemorySendChannel.send_nowait, trio.MemoryReceiveChannel.receive_nowait
    sweep(talk, cancel=None)

    assert before == (trio.MemorySendChannel.send_nowait, trio.MemoryReceiveChannel.receive_nowait)


def test_the_whole_report_is_json():
    """Tasks with their parents, steps with places, messages, injections, deliveries, waits: plain values."""

    async def scenario(sim: Simulation) -> None:
        slots = [1]
        sim.at_end(lambda: slots == [1], "the slot is back")
        send, receive = trio.open_memory_channel[int](0)

        async def child() -> None:
            slots.clear()
            await send.send(1)
            slots.append(1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(child)
            await receive.receive()

    report = sweep(scenario)
    found = json.loads(report.json())

    failure = found["failures"][0]
    run = failure["run"]
    assert (False, "at_end", "main") == (found["ok"], failure["kind"], failure["task"])
    assert [("main", None), ("child", 0)] == [(t["label"], t["parent"]) for t in run["tasks"]]
    assert list(range(1, len(run["steps"]) + 1)) == [s["step"] for s in run["steps"]]
    assert {"file", "path", "line", "in"} < set(run["steps"][0])
    assert failure["injected"] == [i["what"] for i in run["injected"]]
    assert failure["task"] == run["delivered"][0]["task"]
    assert "1" == found["baseline"]["messages"][0]["value"]
    assert found == json.loads(json.dumps(report.to_json()))


def test_a_send_of_the_program_is_not_taken_for_one_of_trio():
    """Whatever its name, and whatever folder it lies in: a value that found no room was never sent."""
    source = "def send(channel):\n    with contextlib.suppress(trio.WouldBlock):\n        channel.send_nowait('no')\n"
    names: dict[str, Any] = {"contextlib": contextlib, "trio": trio}
    exec(compile(source, "/home/me/trio/program.py", "exec"), names)

    async def scenario(sim: Simulation) -> None:
        channel, _receiver = trio.open_memory_channel[str](0)
        names["send"](channel)
        await trio.sleep(1)

    recording = sweep(scenario, cancel=None).recording
    assert recording is not None
    assert [m.value for m in recording.messages] == []

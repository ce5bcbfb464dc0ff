"""A scenario can be named on a command line."""

from __future__ import annotations

import pytest
from youyou.testing import examine, load_scenario

SCENARIO = """
import trio

async def leaky(sim):
    slots = [1]
    sim.at_end(lambda: slots == [1], "the slot is back")
    await trio.sleep(1)
    slots.clear()
    await trio.sleep(1)
    slots.append(1)

async def sound(sim):
    await trio.sleep(1)
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A file with two scenarios."""
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / "scenarios_of_a_shop.py"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def test_a_module_or_a_file_with_a_function_is_a_scenario(file):
    """Both ways lead to the same function, which is then swept and explored, or replayed."""
    leaky, sound = load_scenario("scenarios_of_a_shop:leaky"), load_scenario(f"{file}:sound")
    seen: list[tuple[int, int, int]] = []

    bad = examine(leaky, schedules=3)
    good = examine(sound, schedules=3, progress=lambda *done: seen.append(done))

    assert [("sweep", False), ("sweep", False), ("exploration", True)] == [(r.mode, r.ok) for r in bad]
    assert [("sweep", True), ("sweep", True), ("exploration", True)] == [(r.mode, r.ok) for r in good]
    assert all(done <= planned for done, planned, _ in seen)
    assert not examine(leaky, token=bad[0].failures[0].token)[0].ok


@pytest.mark.parametrize("name", ["nothing", "no_such_module:x", "scenarios_of_a_shop:missing", "os:name", ":x"])
def test_a_wrong_name_is_refused_in_words(file, name):
    """What was wrong, and what to write instead."""
    with pytest.raises(ValueError, match=r"is not|cannot find|a scenario is"):
        load_scenario(name)

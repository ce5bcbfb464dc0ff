"""From figures to tables, charts and pages, and programs that say what the plan has."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import chart
from benchmarks.results import Results, spread
from benchmarks.speed import limit, plan
from benchmarks.speed.bare_trio import Bare
from benchmarks.speed.run import WORKLOADS, chosen
from benchmarks.stopping.judge import COUNTS
from benchmarks.tables import TABLES, all_tables, put_into, pythons

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture
def results():
    """Three rounds, of which the second one of LIMIT was dropped."""
    found = Results()
    for number, (ours, floor) in enumerate([(2.0, 1.0), (3.0, None), (6.0, 2.0)]):
        found.add("W1", "youyou", {"ms": ours, "round": number})
        if floor is not None:
            found.add("W1", "limit", {"ms": floor, "round": number})
    return found


def test_a_ratio_compares_within_a_round(results):
    """The ratio of the medians, then the range over the rounds that both have."""
    assert "2.00x (2.00-3.00)" == results.ratio("W1", "ms", "youyou", "limit")


def test_a_figure_is_its_median_and_its_range():
    """One value has no range."""
    assert ("2.00 (1.00-4.00)", "7.00", "-") == (spread([4.0, 1.0, 2.0]), spread([7.0]), spread([]))


def test_results_come_back_from_their_file(results, tmp_path):
    """What was measured once is shown again without measuring."""
    results.save(tmp_path / "results.json")

    assert results == Results.load(tmp_path / "results.json")


def test_a_page_gets_the_tables_that_a_run_has(tmp_path):
    """And keeps those for which there is nothing new."""
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- table: W1 -->\nold\n<!-- end -->\nb\n<!-- table: W2 -->\nkept\n<!-- end -->\n")

    assert 2 == put_into(page, {"W1": "new"})
    assert (
        "a\n<!-- table: W1 -->\n\nnew\n\n<!-- end -->\nb\n<!-- table: W2 -->\nkept\n<!-- end -->\n" == page.read_text()
    )


def test_the_pages_ask_for_tables_that_there_are():
    """And every table is on a page."""
    pages = "".join(page.read_text() for page in DOCS.glob("*.md"))

    assert set(TABLES) == set(re.findall(r"<!-- table: (.+?) -->", pages))


def test_tables_and_charts_are_made_of_what_there_is(results):
    """No figure, no table; and a chart is a picture."""
    counts = dict.fromkeys(COUNTS, 0)
    results.stopping = [{"runtime": "youyou", "scenario": "text", "way": "cancel()", "points": 3, "counts": counts}]

    assert {"W1", "stopping"} <= set(all_tables(results)) < set(TABLES)
    assert all(ElementTree.fromstring(picture).tag for picture in (chart.speed(results), chart.stopping(results)))


def test_a_workload_is_named_with_or_without_its_size():
    """`W3` is all its sizes; what is not there is named."""
    assert ["W3:300", "W3:3000"] == chosen(["W3"])
    assert ["W4:200"] == chosen(["W4:200"])
    with pytest.raises(ValueError, match="no workload W9"):
        chosen(["W9"])


@pytest.mark.parametrize("mode", ["chat", "tools"])
@pytest.mark.parametrize("floor", [Bare(None), Bare(0), Bare(64), limit], ids=["generator", "hop", "channel", "limit"])
async def test_a_floor_says_what_the_plan_has(floor, mode):
    """All deltas and all results reach its reader."""
    async with floor.session(mode, False) as session:
        assert (plan.DELTAS[mode], plan.CALLS.get(mode, 0)) == await session.turn("hello")


def test_youyou_runs_every_workload_but_the_floors_own():
    """Nothing is compared with nothing."""
    assert {"bare apsw"} == {one for name, those in WORKLOADS.items() if "youyou" not in those for one in those}


def test_a_run_on_another_python_stands_beside_the_first(results):
    """Its figures do not replace those of the first, and a table has both."""
    results.about = {"python": "3.11.7"}
    other = Results({"python": "3.13.0"})
    other.add("W1", "youyou", {"ms": 1.0, "round": 0})

    whole = Results.merged([results, other])

    assert [2.0, 3.0, 6.0] == whole.values("W1", "youyou", "ms")
    assert {"3.13": {"W1": {"youyou": {"ms": [1.0], "round": [0]}}}} == whole.pythons
    assert ["3.11", "3.13"] == [line.split(" | ")[0].strip("| ") for line in pythons(whole).splitlines()[2:]]

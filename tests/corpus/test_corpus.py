"""The kit finds every planted bug with its smallest case, and says nothing about the mended twins."""

from __future__ import annotations

from pathlib import Path

import corpus_table
import pytest
from planted import CORPUS
from youyou.testing import replay
from youyou.testing.report.tokens import bare

corpus_table.chapters()
REPLAYED = ("crash", "max_steps")
every_bug = pytest.mark.parametrize("name", CORPUS)


def source_line(location) -> str:
    """The line of the program at ``location``."""
    if not location.file:
        return ""
    return Path(location.file).read_text(encoding="utf-8").splitlines()[location.line - 1].strip()


def test_the_corpus_is_large():
    """At least 25 kinds of bugs, each under one name and with one sentence, and each with a twin."""
    sentences = {entry.bug.__doc__ for entry in CORPUS.values()}

    assert len(CORPUS) >= 25
    assert len(CORPUS) == len(sentences)
    assert [] == [entry.name for entry in CORPUS.values() if entry.twin is None]
    assert set(CORPUS) == {entry.bug.__name__ for c in corpus_table.chapters() for entry in c.entries}


@every_bug
def test_a_planted_bug_passes_an_ordinary_run_and_is_found(name):
    """What is found is what was planted: its kind, the moment, and the await at which it strikes."""
    entry, found = CORPUS[name], corpus_table.finding(name)

    smallest = found.smallest
    assert [] == found.bug.baseline.failures
    assert (entry.finds, entry.token) == (smallest.kind, found.token)
    assert entry.at == source_line(smallest.location)


@pytest.mark.long
@every_bug
def test_the_smallest_case_of_a_planted_bug_can_be_replayed(name):
    """The token alone fails in the same way."""
    entry = CORPUS[name]

    options = {name: value for name, value in entry.look.options.items() if name in REPLAYED}
    again = replay(entry.bug, entry.token, **options)

    assert corpus_table.finding(name).smallest.message == again.failures[0].message


@every_bug
def test_a_mended_twin_is_silent(name):
    """In at least as many runs as it took to find the bug, and with as much done to it; or in every order there is."""
    seen = corpus_table.finding(name)

    seen.twin.assert_ok()
    assert seen.bug.runs <= seen.twin.runs or seen.twin.exhausted == "every order"
    assert seen.bug.delivered <= seen.twin.delivered


@pytest.mark.long
@every_bug
def test_no_smaller_case_is_found_later(name):
    """Sweeping on after the first failure brings up no case that comes before it."""
    entry = CORPUS[name]

    report = entry.look(entry.bug, stop_at_first=False)

    assert entry.token == "yy1" + bare(report.failures[0].token).removeprefix("yy2")


def test_the_page_is_current():
    """The table in the documentation says what was measured."""
    assert corpus_table.page() == corpus_table.PAGE.read_text(encoding="utf-8")

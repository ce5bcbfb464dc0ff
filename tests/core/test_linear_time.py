"""Code over text of others takes linear time (semantics 6): characters are counted, the worst texts known are tried."""

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata
from typing import Any

import pytest
from youyou.core.memory import extraction_answer, search_terms
from youyou.core.memory.extraction_answer import parse_answer
from youyou.core.memory.search_terms import fold


@pytest.mark.parametrize("piece", ['[{"a":', "[{", '[{"a": 1}, {"', "{ ", '[ {"a', "<think>", "</think><think"])
@pytest.mark.parametrize("count", [100, 2_000])
def test_an_answer_is_gone_over_a_few_times_at_most(monkeypatch: pytest.MonkeyPatch, piece: str, count: int) -> None:
    """However often something in it begins like an array of notes and is none."""
    scanned = 0

    class Counting(json.JSONDecoder):
        def raw_decode(self, s: str, idx: int = 0) -> tuple[Any, int]:
            nonlocal scanned
            try:
                value, end = super().raw_decode(s, idx)
            except (ValueError, RecursionError) as error:
                scanned += (error.pos if isinstance(error, json.JSONDecodeError) else len(s)) - idx
                raise
            scanned += end - idx
            return value, end

    monkeypatch.setattr(extraction_answer.json, "JSONDecoder", Counting)
    text = piece * count
    parse_answer(text)

    assert scanned <= 6 * len(text)


def test_thoughts_are_left_out_in_one_pass() -> None:
    """As before: between the first opening tag and the next closing one; a tag alone takes nothing away."""
    notes = '[{"content": "likes tea"}]'
    thought = '<think>[{"content": "no"}]<THINK> more</thinking>'

    for text in (notes, f"{thought}{notes}", f"{notes}</think>", f"{thought}{notes}{thought}"):
        assert ["likes tea"] == [item.content for item in parse_answer(text).items]
    assert 1 == len(parse_answer(f"<think>{notes}").items)


@pytest.mark.parametrize("text", ["\u0e48\u0e38", "\u0301\u0316", "é", "苹果", "か\u3099"])
def test_a_text_is_folded_in_pieces(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Putting marks into order costs the square of a run: no piece is longer than a bound, and all of it is folded."""
    pieces: list[int] = []
    real = unicodedata.normalize

    def counting(form: Any, given: str) -> str:
        pieces.append(len(given))
        return real(form, given)

    monkeypatch.setattr(search_terms.unicodedata, "normalize", counting)
    fold(text * 5_000)

    # Twice, before and after the accents are left out; decomposed, a character may be several.
    assert max(pieces) <= 2 * (256 + 30)
    assert len(text) * 5_000 <= sum(pieces) <= 4 * len(text) * 5_000


def test_a_letter_keeps_its_mark_wherever_a_piece_ends() -> None:
    """No piece begins with the mark of a letter that stands before it."""
    for before in range(250, 260):
        assert "x" * before + "e" + "が" == fold("x" * before + "e\u0301" + "か\u3099")


WORST = """
import resource
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
from youyou.core.compaction.clipping import clip_to, shrink_items
from youyou.core.compaction.summaries import render_within
from youyou.core.history.rendering import render
from youyou.core.history.tokens import estimate_text, message_tokens
from youyou.core.memory.extraction_answer import parse_answer
from youyou.core.memory.search_terms import index_terms
from youyou.core.ports.call_arguments import repaired
from youyou.core.prompts.skills import skills_in
from youyou.core.prompts.tags import escape
from youyou.messages.content import TextBlock, UserInput
from youyou.messages.history import ToolResult, UserMessage
from youyou.messages.text import clean_text, truncate
MIB = 1024 * 1024
pieces = ["<", "< ", "</", "<\\u200b", "\\uff1c/", "<think>", "[{", '[{"a":', "{} ", '"', "\\\\\\\\"]
pieces += ["/", " /", "`", "```", "a", "\\u0e48\\u0e38", "\\u0301\\u0316", "\\ud800", "\\u4e00"]
pieces += ["\\U0001f600", "\\n", " ", "\\x00", "]"]
pieces += ["e\\u0301", "\\u1100"]
for piece in pieces:
    text = piece * (MIB // len(piece))
    escape("memories", text)
    parse_answer(text)
    for _ in index_terms(text):
        pass
    repaired(text)
    clean = clean_text(text)
    truncate(text, "...")
    history = [UserMessage("go"), ToolResult("c", clean)]
    render(history)
    render_within(history, 1_000, estimate_text)
    shrink_items(history, 1_000, message_tokens)
    clip_to(clean, 100, estimate_text)
    skills_in(UserInput((TextBlock(clean),)), {"outline": None})
print("all")
"""


@pytest.mark.long
def test_a_mebibyte_of_the_worst_takes_no_minute() -> None:
    """What is worse than linear would take hours, and is ended by the system."""
    done = subprocess.run([sys.executable, "-c", WORST], capture_output=True, text=True, timeout=600)

    assert (0, "all\n") == (done.returncode, done.stdout), done.stderr[-500:]

"""What a docstring says about a function and its parameters (semantics 8)."""

from __future__ import annotations

import pytest
from youyou.core.tools.docstrings import parameters, summary

GOOGLE = """Weather in a city,
    as it is now.

    More about it.

    Args:
        city: Where: a name,
            or a postcode.

        days (int): How many.
        **extra: Whatever.
        empty:

    Returns:
        text: The weather.
    """

SPHINX = """Weather.

    :param city: Where,
        on two lines.
    :param int days: How many.
    :parameter list[str] tags: Labels.
    :type city: str
    :returns: text
    """


@pytest.mark.parametrize(
    ("doc", "expected"),
    [
        (None, ""),
        ("", ""),
        ("One line.", "One line."),
        (GOOGLE, "Weather in a city, as it is now."),
        (SPHINX, "Weather."),
        ("Args:\n    city: Where.", ""),
        ("\n    :param city: Where.\n", ""),
        ("Says it.\n:param city: Where.", "Says it."),
        ("Note: this is prose.", "Note: this is prose."),
    ],
)
def test_summary_is_the_first_paragraph_on_one_line(doc, expected):
    """The first paragraph is joined; a section is not a paragraph."""
    assert expected == summary(doc)


@pytest.mark.parametrize(
    ("doc", "expected"),
    [
        (None, {}),
        ("Nothing here.", {}),
        (GOOGLE, {"city": "Where: a name, or a postcode.", "days": "How many.", "extra": "Whatever.", "empty": ""}),
        (SPHINX, {"city": "Where, on two lines.", "days": "How many.", "tags": "Labels."}),
        ("X.\n\nParameters:\n  a: A.\n  b: B.\n\nProse again.\n  c: no parameter", {"a": "A.", "b": "B."}),
    ],
)
def test_parameters_are_read_in_both_styles(doc, expected):
    """Google and Sphinx sections give one line for each parameter, continuation lines included."""
    assert expected == parameters(doc)

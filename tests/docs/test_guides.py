"""Every page that shows programs runs, from top to bottom, and prints what it says."""

from __future__ import annotations

import pytest

from .test_testing_pages import DOCS, folder, run

__all__ = ["folder"]

STANDING_ALONE = ("../README.md", "quickstart.md", "tutorial.md", "errors.md", "adapters.md", "scaling.md")
GUIDES = sorted(
    str(page.relative_to(DOCS))
    for page in [
        *(DOCS / name for name in ("quickstart.md", "tutorial.md", "errors.md", "adapters.md", "scaling.md")),
        *DOCS.glob("howto/*.md"),
    ]
)


@pytest.mark.usefixtures("sigint_as_in_a_terminal")
@pytest.mark.parametrize("page", GUIDES)
def test_a_guide_runs_from_top_to_bottom(page, folder):
    """Each block after those above it; a text block is the output of the block before it."""
    printed, promised = run(page, folder)

    assert promised == printed

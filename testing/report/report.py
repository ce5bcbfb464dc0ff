"""The outcome of a sweep, an exploration or a replay: what was found, as values, as text, as JSON and as a page."""

from __future__ import annotations

import attrs

from .findings import Findings


@attrs.frozen
class Report(Findings):
    """The outcome of many runs."""

    def assert_ok(self) -> None:
        """Raise `AssertionError` with the smallest failure unless all went well."""
        __tracebackhide__ = True
        if not self.ok:
            raise AssertionError(str(self))

    def to_html(self) -> str:
        """One self-contained page with a drawing of every failure."""
        from .html import page  # loaded only when somebody wants to look

        return page(self)

"""Make the tables of fields in the pages from the classes themselves: ``python docs/field_tables.py``.

A table stands between ``<!-- fields: AgentConfig -->`` and ``<!-- end -->``; what each field means is its docstring
in the source. A test compares the pages with what this would write.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import attrs
import youyou

DOCS = Path(__file__).parent
_TABLE = re.compile(r"(<!-- fields: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def with_tables(page: str) -> str:
    """The text of a page with every table made anew."""
    return _TABLE.sub(lambda found: found[1] + table(getattr(youyou, found[2])) + found[3], page)


def table(kind: type[Any]) -> str:
    """A Markdown table of the fields of ``kind``: name, default, meaning."""
    meanings = field_docstrings(kind)
    rows = [
        f"| `{field.name}` | {_default(field)} | {meanings.get(field.name, '')} |\n"
        for field in attrs.fields(kind)
        if not field.name.startswith("_")
    ]
    return "| field | default | |\n|---|---|---|\n" + "".join(rows)


def field_docstrings(kind: type[Any]) -> dict[str, str]:
    """The string literal under each field of ``kind`` and of the classes that it is made from, on one line."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__[:-1]):
        body = ast.parse(textwrap.dedent(inspect.getsource(each))).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, below in zip(body.body, body.body[1:], strict=False):
            match field, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str() as text)),
                ):
                    # In a page one backtick is code already, and a bar would end the cell.
                    found[name] = " ".join(text.split()).replace("``", "`").replace("|", "\\|")
    return found


def _default(field: attrs.Attribute[Any]) -> str:
    default = field.default
    if default is attrs.NOTHING:
        return "required"
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # a class at run time
        return "`{}`" if "JsonObject" in repr(default.factory) else f"`{default.factory.__name__}()`"
    if type(default).__module__.startswith("youyou") and attrs.has(type(default)):
        return f"`{type(default).__name__}()`"
    if callable(default):
        return "a function"
    return f"`{default!r}`".replace("\n", "\\n").replace("|", "\\|")


def main() -> None:
    """Write every page that has tables."""
    for page in DOCS.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        if (new := with_tables(text)) != text:
            page.write_text(new, encoding="utf-8")
            print(f"wrote {page.name}", file=sys.stderr)


if __name__ == "__main__":
    main()

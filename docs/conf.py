"""The documentation site: ``sphinx-build -W docs build/site``. Needs the extra ``docs`` and no network."""

from __future__ import annotations

import re
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

project = "youyou"
author = "the youyou developers"
copyright = author
version = release = version_of("youyou")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinxcontrib_trio"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["examples"]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["youyou.css"]
html_title = f"youyou {version}"
html_theme_options = {"navigation_with_keys": True}
html_show_sourcelink = False
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
suppress_warnings = ["myst.header"]
# In docstrings a single backtick names code; what it names is in the reference, under the name that users import.
default_role = "code"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

_DOCS = Path(__file__).parent
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#:\s]+)(#[^)]*)?\)")


def _plain_outward_links(app: Any, name: str, source: list[str]) -> None:
    """A page may point at a file of the repository that is not a page of the site: there only its name is left."""
    folder = (_DOCS / name).parent

    def shown(found: re.Match[str]) -> str:
        target = (folder / found[2]).resolve()
        inside = target.is_relative_to(_DOCS) and target.suffix in (".md", ".json")
        return found[0] if inside else found[1]

    source[0] = _LINK.sub(shown, source[0])


def _without_synopsis_colon(app: Any, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    """Docstrings are written for readers of the code: an indented line after a colon is shown as it is there."""
    for at, line in enumerate(lines):
        if line.strip().startswith("Raises (from the stream):"):
            lines[at] = line.replace("Raises (from the stream):", "Raises, from the stream::")


def setup(app: Any) -> None:
    """Connect the two."""
    app.connect("source-read", _plain_outward_links)
    app.connect("autodoc-process-docstring", _without_synopsis_colon)

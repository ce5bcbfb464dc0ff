"""Text put between tags that it cannot close (semantics 10, 11).

    fence("memories", "a </memories> b")    # "<memories>\\na &lt;/memories> b\\n</memories>"

Only the tag's own name is disarmed; other markup in the text is left as it is.
"""

from __future__ import annotations

import html
import re


def fence(tag: str, text: str, **attributes: str) -> str:
    """``text`` on lines of its own inside ``<tag>``, with every opening or closing of that tag in it disarmed."""
    shown = "".join(f' {name}="{html.escape(value)}"' for name, value in attributes.items())
    return f"<{tag}{shown}>\n{escape(tag, text)}\n</{tag}>"


def escape(tag: str, text: str) -> str:
    """``text`` in which nothing reads as an opening or closing ``tag``, in whatever case and with whatever space."""
    # Whatever could be read as the tag, not only its exact form: models are lenient readers.
    return re.sub(rf"<(?=\s*/?\s*{re.escape(tag)}(?![\w-]))", "&lt;", text, flags=re.IGNORECASE)

"""Text that can always be encoded (semantics 5).

clean("a\\ud83d")                           # "a\\ufffd": a lone surrogate can be neither sent nor stored
"""

from __future__ import annotations


def clean(text: str) -> str:
    """``text`` without lone surrogates: each becomes U+FFFD; two that belong together become their character."""
    if text.isascii() or _is_encodable(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

"""Fills in the prompt of a pipeline's step (semantics 13, L2)."""

from __future__ import annotations

import re
from collections.abc import Mapping

_PLACE = re.compile(r"\{(input|steps\.([^{}]+))\}")


def fill_in(prompt: str, user_text: str, outputs: Mapping[str, str]) -> str:
    """``prompt`` with ``{input}`` and ``{steps.NAME}`` replaced. Other braces stay; inserted text is not read again."""
    return _PLACE.sub(lambda match: user_text if match[2] is None else outputs[match[2]], prompt)

"""Ids and names of one API in a form that another takes (semantics 4, 5): length, alphabet, never two made one. Pure.

ids = Ids(longest=40)
ids("call_" + "x" * 80)         # "call_xxxxxxxxxxxxxxxxxx_0b1c...": the same for the call and for its result
"""

from __future__ import annotations

import re
from hashlib import sha256

import attrs

_ODD = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 64
_DIGITS = 12


@attrs.define
class Ids:
    """The ids of one request. ``exactly`` and ``plain`` (letters and digits alone) suit Mistral's own API."""

    longest: int = 64
    exactly: bool = False
    plain: bool = False
    _given: dict[str, str] = attrs.field(factory=dict)
    _taken: set[str] = attrs.field(factory=set)

    def __call__(self, call_id: str) -> str:
        """The id to send in place of ``call_id``; one that fits stays as it is."""
        if call_id not in self._given:
            sent, salt = call_id, 0
            while not self._fits(sent) or sent in self._taken:
                sent, salt = self._made(call_id, salt), salt + 1
            self._given[call_id] = sent
            self._taken.add(sent)
        return self._given[call_id]

    def _fits(self, call_id: str) -> bool:
        odd = _ODD.search(call_id) or (self.plain and not call_id.isalnum())
        return not odd and 0 < len(call_id) <= self.longest and (not self.exactly or len(call_id) == self.longest)

    def _made(self, call_id: str, salt: int) -> str:
        digest = sha256(f"{salt} {call_id}".encode(errors="replace")).hexdigest()
        if self.plain:
            return digest[: self.longest]
        # The readable part helps a reader of the log; the digest keeps two long ids apart.
        return f"{_ODD.sub('_', call_id)[: self.longest - _DIGITS - 1]}_{digest[:_DIGITS]}"


def tool_name(name: str) -> str:
    """A name that a model made up, in the alphabet that every API takes back."""
    return _ODD.sub("_", name)[:_LONGEST_NAME] or "_"

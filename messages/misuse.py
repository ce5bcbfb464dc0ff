"""Answers to the first mistakes, on the classes themselves: what to write instead of what Python would only refuse.

    @misused(with_="write 'async with session'", attributes={"text": "write (await turn.result()).text"})
    class RunningTurn: ...

    @known_fields
    @attrs.frozen
    class AgentConfig: ...

Each answer has the class of the error that Python raises without it, so that code that asks (``iter(x)``, ``hasattr``)
goes on as before. Type checkers see none of it and still refuse the mistake.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")


def misused(
    *,
    made_by: tuple[Callable[[object], bool], str] | None = None,
    with_: str | None = None,
    async_with: str | None = None,
    iterated: str | None = None,
    attributes: Mapping[str, str] | None = None,
    any_attribute: str | None = None,
) -> Callable[[type[T]], type[T]]:
    """Have a class answer what is not meant to be done with it.

    Args:
        made_by: a test of the first argument, which the runtime's own calls pass, and the answer to others.
        with_, async_with, iterated: answers to ``with``, ``async with`` and ``for``.
        attributes: answers by the attribute that is asked for.
        any_attribute: the answer for all other attributes; ``{name}`` is filled in.
    """

    def decorate(cls: type[T]) -> type[T]:
        for names, answer in (
            (("__enter__", "__exit__"), with_),
            (("__aenter__", "__aexit__"), async_with),
            (("__iter__",), iterated),
        ):
            if answer is not None:
                for name in names:
                    setattr(cls, name, _refusal(answer))
        if made_by is not None:
            _refuse_making(cls, *made_by)
        if attributes is not None or any_attribute is not None:
            _answer_attributes(cls, attributes or {}, any_attribute)
        return cls

    return decorate


def _refusal(answer: str) -> Callable[..., NoReturn]:
    def refuse(*_: object) -> NoReturn:
        raise TypeError(answer)

    return refuse


def _refuse_making(cls: type[Any], belongs: Callable[[object], bool], answer: str) -> None:
    def new(cls: type[Any], *args: object, **_: object) -> Any:
        # In __new__, because Python counts the arguments of __init__ before any code of it runs.
        if not args or not belongs(args[0]):
            raise TypeError(answer)
        return object.__new__(cls)

    setattr(cls, "__new__", staticmethod(new))  # noqa: B010  mypy takes no assignment to it


def _answer_attributes(cls: type[Any], attributes: Mapping[str, str], other: str | None) -> None:
    def getattr_(self: object, name: str) -> NoReturn:
        answer = attributes.get(name)
        if answer is None and other is not None and not name.startswith("_"):
            answer = other.format(name=name)
        usual = f"{cls.__name__!r} object has no attribute {name!r}"
        raise AttributeError(usual if answer is None else f"{usual}: {answer}", name=name, obj=self)

    cls.__getattr__ = getattr_


def known_fields(cls: type[T]) -> type[T]:
    """Name the nearest field where a class is made with a keyword that it does not have."""
    plain: Callable[..., None] = cls.__init__

    @functools.wraps(plain)
    def init(self: Any, *args: Any, **fields: Any) -> None:
        try:
            plain(self, *args, **fields)
        except TypeError:
            _refuse_unknown(cls, fields)
            raise

    cls.__init__ = init  # type: ignore[method-assign]  # the same parameters
    return cls


def _refuse_unknown(cls: type[Any], fields: Mapping[str, object]) -> None:
    from difflib import get_close_matches
    from inspect import signature

    known = list(signature(cls).parameters)
    for name in fields:
        if name not in known:
            near = get_close_matches(name, known, n=1, cutoff=0.5)
            instead = f"did you mean {near[0]!r}?" if near else f"its fields are: {', '.join(known)}"
            raise TypeError(f"{cls.__name__} has no field {name!r}; {instead}") from None

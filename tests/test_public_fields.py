"""Public values explain themselves: each field of each public class has a docstring of its own."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator

import attrs
import pytest
import youyou
import youyou.testing
from youyou.messages.errors import AgentError


def undocumented(source: str) -> dict[str, set[str]]:
    """The annotated public names of each class in ``source`` that no string literal follows."""
    return {
        node.name: {
            field.target.id
            for field, after in zip(node.body, [*node.body[1:], None], strict=True)
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and not _is_text(after)
            if not field.target.id.startswith("_")
        }
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef)
    }


def _is_text(node: ast.stmt | None) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def public_classes(module: object, names: list[str]) -> Iterator[type]:
    """The attrs classes and the base of all errors among the names of a public module."""
    found = [getattr(module, name) for name in names]
    yield from (each for each in found if isinstance(each, type) and (attrs.has(each) or each is AgentError))


def unexplained(cls: type) -> set[str]:
    """The fields of a class, inherited ones included, that have no docstring."""
    own = [base for base in cls.__mro__ if base.__module__.startswith("youyou.")]
    return {f"{base.__name__}.{name}" for base in own for name in _missing(base)}


def _missing(cls: type) -> set[str]:
    return undocumented(inspect.getsource(inspect.getmodule(cls) or cls))[cls.__name__]


PUBLIC = [*public_classes(youyou, youyou.__all__), *public_classes(youyou.testing, youyou.testing.__all__)]


@pytest.mark.parametrize("cls", PUBLIC, ids=lambda cls: cls.__name__)
def test_each_field_of_a_public_class_is_explained(cls):
    """Meaning, unit, default and what None means stand under the field, where an editor shows them."""
    assert set() == unexplained(cls)


def test_every_public_value_is_looked_at():
    """The classes that hold most fields are among those that the test above reads."""
    classes = list(public_classes(youyou, youyou.__all__))

    assert {youyou.AgentConfig, youyou.AgentError, youyou.AgentStatistics, youyou.TurnResult} <= set(classes)
    assert len(classes) > 60


def test_a_field_without_a_docstring_is_found():
    """Also the last one of a class, and one that follows a documented one; private fields need none."""
    source = '''
class A:
    """A."""
    a: int
    """Its meaning."""
    b: int = 1
    _c: int = 2
    d: int = 3
'''
    assert {"A": {"b", "d"}} == undocumented(source)

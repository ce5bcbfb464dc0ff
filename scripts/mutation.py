"""Changes the code on purpose, one place at a time, and tells which changes no test notices.

    python scripts/mutation.py                          # 150 mutants of core and actors, drawn by the commit's hash
    python scripts/mutation.py --sample 20 --jobs 4 --seed 1 core/retry.py

Two steps. The first runs the quick tests once under coverage and notes which test enters which line (kept in a file per
commit, as it takes as long as the suite). The second draws mutants, and runs for each the tests that enter the changed
line, the most specific first, until one fails. What is left is printed, with the change: a survivor is a promise that
no test holds, or an equivalent change, which needs a reader to tell.

Tests are collected once; each mutant is a fork in which the code of one function is replaced. Needs `fork` and the
package ``coverage``.
"""

from __future__ import annotations

import argparse
import ast
import gc
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import attrs
import pytest

ROOT = Path(__file__).resolve().parents[1]
IGNORED = ("adapters", "cli", "testing", "corpus", "docs", "adapters")
"""Folders of tests that say nothing about core and actors, or need sockets, processes and a terminal."""
SECONDS = 180
"""After which a mutant that still runs counts as noticed: it hangs."""
MOST_TESTS = 600


@attrs.frozen
class Mutant:
    """One change: ``old`` at ``line`` of a file becomes ``new``; ``function`` is the qualified name around it."""

    path: str
    line: int
    function: str
    first_line: int
    old: str
    new: str
    source: str = attrs.field(repr=False)

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.function}: {self.old}  ->  {self.new}"


# ---- drawing -------------------------------------------------------------------------------------------------------

SWAPS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "-", ast.Sub: "+", ast.Mult: "//", ast.FloorDiv: "*"}


def changes(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Nodes to replace at ``node``, and by what text."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in SWAPS:
            yield node, f"({ast.unparse(left)} {SWAPS[type(op)]} {ast.unparse(right)})"
        case ast.BoolOp(op=op, values=values):
            word = " or " if isinstance(op, ast.And) else " and "
            yield node, "(" + word.join(f"({ast.unparse(value)})" for value in values) + ")"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, f"bool({ast.unparse(operand)})"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC and not _texts(left, right):
            yield node, f"({ast.unparse(left)} {ARITHMETIC[type(op)]} {ast.unparse(right)})"
        case ast.Constant(value=bool(value)):
            yield node, str(not value)
        case ast.Constant(value=int(value)):
            yield node, str(value + 1)
        case ast.Call(func=ast.Name(id="min" | "max" as name)):
            yield node.func, "max" if name == "min" else "min"
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            yield test, "False"
            if not isinstance(node, ast.While):
                yield test, "True"
        case ast.Expr(value=ast.Call() | ast.Await() as value) if not _logs(value):
            yield node, "pass"
        case ast.AugAssign():
            yield node, "pass"
        case ast.Return(value=value) if value is not None and not _is_constant(value):
            yield value, "None"


def _texts(*nodes: ast.AST) -> bool:
    return any(isinstance(node, ast.JoinedStr | ast.Constant) and not _number(node) for node in nodes)


def _number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _is_constant(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant)


def _logs(node: ast.AST) -> bool:
    return "logger." in ast.unparse(node) or "warnings." in ast.unparse(node)


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Every mutant of the functions of one file."""
    source = path.read_text("utf-8")
    tree = ast.parse(source)
    for function, name in _functions(tree, ""):
        if function.name in ("__repr__", "__str__"):
            continue
        first = min([function.lineno, *(each.lineno for each in function.decorator_list)])
        for statement in function.body:
            for node in _inside(statement):
                for changed, new in changes(node):
                    old = ast.get_source_segment(source, changed) or ""
                    if " ".join(old.split()) in (new, f"({new})") or f"({' '.join(old.split())})" == new:
                        continue
                    text = _replaced(source, changed, new)
                    place = str(path.relative_to(ROOT))
                    line = changed.lineno  # type: ignore[attr-defined]
                    yield Mutant(place, line, name, first, " ".join(old.split())[:100], new[:100], text)


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """A node and those below it, but for annotations, messages of errors, asserts and nested functions' signatures."""
    if isinstance(node, ast.Raise | ast.Assert | ast.FunctionDef | ast.AsyncFunctionDef | ast.JoinedStr):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body:
                yield from _inside(statement)
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _inside(child)


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, str]]:
    """Functions of modules and classes; nested ones belong to the function around them."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child, prefix + child.name
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")


def _replaced(source: str, node: Any, new: str) -> str:
    lines = source.encode().split(b"\n")
    before = b"\n".join([*lines[: node.lineno - 1], lines[node.lineno - 1][: node.col_offset]])
    after = b"\n".join([lines[node.end_lineno - 1][node.end_col_offset :], *lines[node.end_lineno :]])
    # As many lines as before, so that first lines of functions stay where they are.
    return (before + new.encode() + b"\n" * 0 + after).decode()


def draw(paths: list[Path], sample: int, seed: str) -> list[Mutant]:
    """A sample of all mutants of these files."""
    everything = [mutant for path in paths for mutant in mutants_of(path)]
    return random.Random(seed).sample(everything, min(sample, len(everything)))


# ---- which test enters which line ----------------------------------------------------------------------------------


class Mapping:
    """A plugin of pytest: one context of coverage for each test."""

    def __init__(self, coverage: Any) -> None:
        self.coverage = coverage

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Note the test that runs."""
        self.coverage.switch_context(item.nodeid)
        yield


def make_map(file: Path) -> None:
    """Run the quick tests and write which of them enter which line."""
    import coverage

    data = tempfile.mkdtemp()
    measured = coverage.Coverage(data_file=f"{data}/data", include=[f"{ROOT}/core/*", f"{ROOT}/actors/*"])
    measured.start()
    code = pytest.main([*_arguments(), "-p", "no:randomly", "-q"], plugins=[Mapping(measured)])
    measured.stop()
    if code not in (0, 1):
        sys.exit(f"the tests ended with {code}")
    found = measured.get_data()
    lines: dict[str, dict[int, list[str]]] = {}
    for name in found.measured_files():
        contexts = found.contexts_by_lineno(name)
        lines[str(Path(name).relative_to(ROOT))] = {
            line: [each for each in ids if each] for line, ids in contexts.items()
        }
    file.write_text(json.dumps(lines))


def _arguments() -> list[str]:
    return [str(ROOT / "tests"), *(f"--ignore={ROOT / 'tests' / name}" for name in IGNORED), "-p", "no:cacheprovider"]


# ---- running -------------------------------------------------------------------------------------------------------


class Hunt:
    """A plugin of pytest: instead of running the collected tests, runs those of each mutant in a fork."""

    def __init__(self, mutants: list[Mutant], entered: dict[str, dict[str, list[str]]], jobs: int) -> None:
        self.mutants, self.entered, self.jobs = mutants, entered, jobs
        self.results: list[tuple[Mutant, str]] = []
        self._failed = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Every mutant, a few at a time."""
        breadth: dict[str, int] = defaultdict(int)
        for lines in self.entered.values():
            for ids in lines.values():
                for each in ids:
                    breadth[each] += 1
        items = {item.nodeid: item for item in session.items}
        running: dict[int, tuple[Mutant, float, int]] = {}
        waiting = list(self.mutants)
        while waiting or running:
            while waiting and len(running) < self.jobs:
                mutant = waiting.pop(0)
                ids = self.entered.get(mutant.path, {}).get(str(mutant.line), [])
                chosen = sorted((each for each in ids if each in items), key=breadth.__getitem__)[:MOST_TESTS]
                if not chosen:
                    self._note(mutant, "not entered by any test")
                    continue
                reading, writing = os.pipe()
                pid = os.fork()
                if not pid:
                    os.close(reading)
                    self._child(mutant, [items[each] for each in chosen], writing)
                os.close(writing)
                running[pid] = (mutant, time.monotonic(), reading)
            self._reap(running)
        return True

    def _reap(self, running: dict[int, tuple[Mutant, float, int]]) -> None:
        time.sleep(0.05)
        for pid, (mutant, since, reading) in list(running.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended and time.monotonic() - since < SECONDS:
                continue
            if not ended:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            said = os.read(reading, 4_000).decode()
            os.close(reading)
            del running[pid]
            code = os.waitstatus_to_exitcode(status) if ended else -9
            self._note(mutant, _result(code, said))

    def _note(self, mutant: Mutant, result: str) -> None:
        self.results.append((mutant, result))
        print(f"[{len(self.results)}/{len(self.mutants)}] {mutant}: {result}", file=sys.__stdout__, flush=True)

    def _child(self, mutant: Mutant, items: list[pytest.Item], writing: int) -> None:
        quiet = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(quiet, descriptor)
        try:
            install(mutant)
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self._failed:
                    os.write(writing, self._failed.encode()[:4_000])
                    os._exit(1)
        except BaseException as error:
            os.write(writing, repr(error).encode()[:4_000])
            os._exit(2)
        os._exit(0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notice the first failure."""
        if report.failed and not self._failed:
            self._failed = report.nodeid


def _result(code: int, said: str) -> str:
    if code == 0:
        return "survived"
    # A fault of this script is not a test that noticed.
    return f"not tried: {said}" if code == 2 else f"killed by {said or 'a hang or a crash'}"


def install(mutant: Mutant) -> None:
    """Give the function of this process its changed code, wherever it is referred to."""
    file = str(ROOT / mutant.path)
    new = _find(compile(mutant.source, file, "exec", dont_inherit=True), mutant)
    functions = [
        each
        for each in gc.get_objects()
        if isinstance(each, FunctionType)
        and each.__code__.co_filename == file
        and each.__code__.co_qualname == mutant.function
        and each.__code__.co_firstlineno == mutant.first_line
    ]
    if not functions:
        raise LookupError(f"no function {mutant.function}")
    for function in functions:
        _keep_protection(function.__code__, new)
        function.__code__ = new


def _find(code: CodeType, mutant: Mutant) -> CodeType:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_qualname == mutant.function and constant.co_firstlineno == mutant.first_line:
                return constant
            if mutant.function.startswith(f"{constant.co_qualname}."):
                return _find(constant, mutant)
    raise LookupError(f"no code for {mutant.function}")


def _keep_protection(old: CodeType, new: CodeType) -> None:
    # Trio marks protection from Ctrl-C by code object.
    from trio._core._ki import _CODE_KI_PROTECTION_STATUS_WMAP as marks

    with suppress(KeyError):
        marks[new] = marks[old]


# ---- the command ---------------------------------------------------------------------------------------------------


def commit() -> str:
    """The hash of what is checked out."""
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def main() -> int:
    """Draw, run, print. The exit code is 1 if anything survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", default=["core", "actors"])
    parser.add_argument("--sample", type=int, default=150)
    parser.add_argument("--seed", default=commit())
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("--map", type=Path, help="where the map of lines and tests is kept")
    given = parser.parse_args()
    kept = given.map or Path(tempfile.gettempdir()) / f"youyou-mutation-{commit()[:12]}.json"
    os.chdir(ROOT)
    if not kept.exists():
        # In a process of its own: the tracer must not run along with the mutants.
        pid = os.fork()
        if not pid:
            make_map(kept)
            os._exit(0)
        os.waitpid(pid, 0)
    files = [file for path in given.paths for file in sorted((ROOT / path).rglob("*.py") or [])] or []
    files += [ROOT / path for path in given.paths if path.endswith(".py")]
    hunt = Hunt(draw(files, given.sample, given.seed), json.loads(kept.read_text()), given.jobs)
    pytest.main([*_arguments(), "-q", "-p", "no:randomly", "-p", "no:xdist"], plugins=[hunt])
    survivors = [(mutant, result) for mutant, result in hunt.results if not result.startswith("killed")]
    print(f"\n{len(survivors)} of {len(hunt.results)} survived (seed {given.seed}):")
    for mutant, result in sorted(survivors, key=lambda pair: str(pair[0])):
        print(f"  {mutant}" + ("" if result == "survived" else f"   ({result})"))
    return int(bool(survivors))


if __name__ == "__main__":
    sys.exit(main())

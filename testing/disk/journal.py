"""What was done to a folder, in order, and every state that a crash may leave of it.

    journal.write(inode, offset=0, data=b"abc")
    journal.rename("a.tmp", "a", inode)
    journal.sync(inode)
    journal.crash_states()                  # trees: what a file system may hold afterwards

Pure: knows no files. The model is that of ext4, xfs and btrfs with their default options, at its worst:

- what was written is safe once its file was synced; until then each write may be lost, be there in part, or be there
  although an earlier one is not;
- a new file is safe, name and all, once it was synced;
- a rename or a removal is safe once its directory was synced; until then it may be lost, and it may be there although
  the data of the renamed file are not.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

import attrs

Kind = Literal["create", "write", "truncate", "rename", "remove", "mkdir", "sync", "sync_folder"]
Tree: TypeAlias = "dict[str, bytes | None]"
"""Contents by path; None is a directory."""
MOST_STATES = 64
"""States of one crash at the most: all written and all lost are kept, the others thinned out evenly."""


@attrs.frozen
class Op:
    """One operation."""

    kind: Kind
    inode: int = 0
    path: str = ""
    other: str = ""
    offset: int = 0
    data: bytes = b""


@attrs.define(eq=False)
class Journal:
    """The operations that may still be lost, and what is safe."""

    names: dict[str, int | None] = attrs.field(factory=dict)
    """Inodes by path, of what is safe; None is a directory."""
    contents: dict[int, bytes] = attrs.field(factory=dict)
    ops: list[Op] = attrs.field(factory=list)

    def note(self, op: Op) -> None:
        """``op`` was done. Sync."""
        self.ops.append(op)
        if op.kind in ("sync", "sync_folder"):
            self._fold()

    def _fold(self) -> None:
        """Put what no crash can undo into what is safe: the journal stays short."""
        safe = _safe(self.ops)
        folded = 0
        while folded < len(self.ops) and safe[folded]:
            folded += 1
        if folded:
            _apply(self.names, self.contents, self.ops[:folded])
            del self.ops[:folded]

    def crash_states(self) -> list[Tree]:
        """Every state that a crash now may leave, all of it written first, none twice."""
        seen: dict[tuple[tuple[str, bytes | None], ...], Tree] = {}
        for ops in self._survivors():
            names, contents = dict(self.names), dict(self.contents)
            _apply(names, contents, ops)
            tree: Tree = {path: None if inode is None else contents.get(inode, b"") for path, inode in names.items()}
            seen.setdefault(tuple(sorted(tree.items(), key=lambda item: item[0])), tree)
        return _thinned(list(seen.values()))

    def _survivors(self) -> Iterator[list[Op]]:
        """What may survive of the operations that are not safe."""
        done, safe = self.ops, _safe(self.ops)
        pending = [index for index, is_safe in enumerate(safe) if not is_safe]
        yield done
        yield [op for op, is_safe in zip(done, safe, strict=True) if is_safe]
        yield [op for op, s in zip(done, safe, strict=True) if s or op.kind not in ("write", "truncate")]
        for lost in pending:
            yield done[:lost] + done[lost + 1 :]
            yield [op for index, op in enumerate(done) if safe[index] or index <= lost]
            if done[lost].kind == "write" and len(done[lost].data) > 1:
                half = attrs.evolve(done[lost], data=done[lost].data[: len(done[lost].data) // 2])
                yield [*done[:lost], half, *done[lost + 1 :]]
                yield [half if index == lost else op for index, op in enumerate(done) if safe[index] or index == lost]


def _safe(ops: Sequence[Op]) -> list[bool]:
    """Which of ``ops`` no crash after them can undo."""
    safe = [op.kind in ("sync", "sync_folder", "mkdir") for op in ops]
    for number, sync in enumerate(ops):
        if sync.kind == "sync":
            for index in range(number):
                if ops[index].inode == sync.inode and ops[index].kind in ("create", "write", "truncate"):
                    safe[index] = True
        elif sync.kind == "sync_folder":
            for index in range(number):
                if ops[index].kind in ("create", "rename", "remove") and sync.path in _folders(ops[index]):
                    safe[index] = True
    return safe


def _folders(op: Op) -> Iterable[str]:
    return (posixpath.dirname(op.path), posixpath.dirname(op.other)) if op.other else (posixpath.dirname(op.path),)


def _apply(names: dict[str, int | None], contents: dict[int, bytes], ops: Iterable[Op]) -> None:
    for op in ops:
        match op.kind:
            case "create":
                names[op.path] = op.inode
            case "mkdir":
                names[op.path] = None
            case "write":
                old = contents.get(op.inode, b"").ljust(op.offset, b"\0")
                contents[op.inode] = old[: op.offset] + op.data + old[op.offset + len(op.data) :]
            case "truncate":
                contents[op.inode] = contents.get(op.inode, b"")[: op.offset].ljust(op.offset, b"\0")
            case "rename":
                _rename(names, op)
            case "remove":
                names.pop(op.path, None)
            case _:
                pass


def _rename(names: dict[str, int | None], op: Op) -> None:
    if op.inode:
        names.pop(op.path, None)
        names[op.other] = op.inode
        return
    # A directory takes along what is in it.
    inside = [path for path in names if path == op.path or path.startswith(op.path + "/")]
    for path in inside:
        names[op.other + path[len(op.path) :]] = names.pop(path)


def _thinned(states: list[Tree]) -> list[Tree]:
    if len(states) <= MOST_STATES:
        return states
    # The first two are all written and all lost.
    rest = states[2:]
    return states[:2] + [rest[round(n * (len(rest) - 1) / (MOST_STATES - 3))] for n in range(MOST_STATES - 2)]

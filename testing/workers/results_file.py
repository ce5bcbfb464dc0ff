"""Results of a campaign in a file, so that it can be stopped and go on another day.

    with ResultsFile(path, "what it is of", list[Seen]) as kept:
        while (found := kept.next()) is not None: ...      # what is there already
        kept.add(result)                                   # what comes after it

One record for each result, in order, each with its length and a checksum; an end that was cut off is dropped.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import IO, Any
from zlib import compress, crc32, decompress

import msgspec

_HEAD = struct.Struct(">II")
_TITLE = b"youyou campaign 1\n"


class ResultsFile:
    """Results of one campaign, in the order of its units."""

    def __init__(self, path: str | Path, title: str, kind: Any) -> None:
        self._path, self._title = Path(path), title
        self._decoder = msgspec.msgpack.Decoder(kind)
        self._encoder = msgspec.msgpack.Encoder()
        self._file: IO[bytes] | None = None
        self._reading = True

    def __enter__(self) -> ResultsFile:
        new = not self._path.exists() or self._path.stat().st_size == 0
        self._file = self._path.open("w+b" if new else "r+b")
        if new:
            self._write(_TITLE + self._title.encode())
            self._reading = False
        elif (found := self._record()) != _TITLE + self._title.encode():
            self._file.close()
            said = found.removeprefix(_TITLE).decode() if found and found.startswith(_TITLE) else "something else"
            raise ValueError(
                f"{self._path} does not hold the results of this campaign, {self._title!r}, but: {said}; give the same "
                "scenario and options, or another file"
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def next(self) -> Any | None:
        """The next result that is kept; None: all later ones are to be added."""
        if not self._reading:
            return None
        assert self._file is not None
        at = self._file.tell()
        record = self._record()
        if record is None:
            self._file.seek(at)
            self._file.truncate()
            self._reading = False
            return None
        return self._decoder.decode(decompress(record))

    def add(self, result: Any) -> None:
        """Keep ``result`` behind all others."""
        self._write(compress(self._encoder.encode(result), 1))

    def _record(self) -> bytes | None:
        assert self._file is not None
        head = self._file.read(_HEAD.size)
        if len(head) == _HEAD.size:
            length, check = _HEAD.unpack(head)
            # Not more than there is: the length itself may be of a file that is something else.
            if length <= self._path.stat().st_size:
                record = self._file.read(length)
                if len(record) == length and crc32(record) == check:
                    return record
        return None

    def _write(self, record: bytes) -> None:
        assert self._file is not None
        self._file.write(_HEAD.pack(len(record), crc32(record)) + record)
        self._file.flush()

"""The simulated folder, as a program that uses Python's and Trio's files sees it."""

from __future__ import annotations

import builtins
import errno
import io
import os
import tempfile
from pathlib import Path

import pytest
import trio
import trio.lowlevel
from youyou.testing import Simulation, sweep


def sync_folder(path: Path) -> None:
    """What a careful program does after a rename."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def save_carefully(folder: Path, text: str) -> None:
    """Write beside, sync, replace, sync the folder."""
    with open(folder / "state.tmp", "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(folder / "state.tmp", folder / "state")
    sync_folder(folder)


def save_without_sync(folder: Path, text: str) -> None:
    """The common mistake: nothing makes sure that the data are there before the name is."""
    (folder / "state.tmp").write_text(text)
    os.replace(folder / "state.tmp", folder / "state")
    sync_folder(folder)


def save_in_place(folder: Path, text: str) -> None:
    """The other one: between the truncation and the write there is nothing."""
    with open(folder / "state", "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def crashes(save):
    """Save twice with ``save``, crash everywhere: what was acknowledged must be there."""
    acknowledged: list[str] = []

    async def scenario(sim: Simulation) -> None:
        acknowledged.clear()
        folder = sim.disk().path
        for text in ("one", "two"):
            await trio.to_thread.run_sync(save, folder, text)
            acknowledged.append(text)
            await trio.sleep(1)

    async def recover(sim: Simulation) -> None:
        file = sim.disk().path / "state"
        found = file.read_text() if file.exists() else ""
        expected = [acknowledged[-1] if acknowledged else "", "two" if acknowledged else "one"]
        assert found in expected, f"{found!r} after {acknowledged} were acknowledged"

    return sweep(scenario, cancel=None, crash=recover)


def test_a_careful_save_survives_every_crash():
    """Old or new, never anything else."""
    report = crashes(save_carefully)
    report.assert_ok()
    assert report.delivered > 5


@pytest.mark.parametrize("save", [save_without_sync, save_in_place])
def test_a_careless_save_is_found_out(save):
    """A crash leaves an empty file, or half of one."""
    report = crashes(save)
    assert not report.ok
    assert "were acknowledged" in str(report)


def test_trio_files_are_watched_too():
    """`trio.Path` and `trio.open_file` go through threads; a crash loses what they did not sync."""

    async def scenario(sim: Simulation) -> None:
        path = trio.Path(sim.disk().path)
        await (path / "a").write_text("never synced")
        async with await trio.open_file(path / "b", "wb") as file:
            await file.write(b"synced")
            await file.flush()
            os.fsync(file.fileno())
        await trio.sleep(1)

    found: set[str] = set()

    async def recover(sim: Simulation) -> None:
        found.add(" ".join(sorted(f"{p.name}={p.read_text()}" for p in sim.disk().path.iterdir())))

    sweep(scenario, cancel=None, crash=recover).assert_ok()
    assert {"", "a=never synced b=synced", "b=synced", "a= b=synced", "a=never  b=synced"} <= found


def test_a_log_of_synced_lines_loses_none_that_was_acknowledged():
    """Appends are torn at the end only, where nobody has said yet that they are there."""
    acknowledged: list[int] = []

    async def scenario(sim: Simulation) -> None:
        acknowledged.clear()
        with open(sim.disk().path / "log", "ab") as log:
            for number in range(4):
                log.write(b"%d\n" % number)
                log.flush()
                os.fsync(log.fileno())
                acknowledged.append(number)
                await trio.sleep(1)

    async def recover(sim: Simulation) -> None:
        path = sim.disk().path / "log"
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        assert acknowledged == [int(line) for line in lines][: len(acknowledged)]

    sweep(scenario, cancel=None, crash=recover).assert_ok()


def test_a_full_disk_takes_what_fits():
    """A write beyond the capacity is an ENOSPC, and a part that fits is there."""

    async def scenario(sim: Simulation) -> None:
        disk = sim.disk()
        disk.capacity = 5
        with open(disk.path / "a", "wb", buffering=0) as file:
            assert 5 == file.write(b"abcdefgh")
            with pytest.raises(OSError) as full:
                file.write(b"fgh")
        assert errno.ENOSPC == full.value.errno
        assert b"abcde" == (disk.path / "a").read_bytes()

    sweep(scenario, cancel=None).assert_ok()


def test_each_file_operation_can_be_broken():
    """As an I/O error, one after the other; what it interrupts is the program's affair."""
    broken: list[str] = []

    async def scenario(sim: Simulation) -> None:
        folder = sim.disk().path
        await trio.lowlevel.checkpoint()
        try:
            save_carefully(folder, "one")
        except OSError as error:
            assert errno.EIO == error.errno
            broken.append(str(error))

    sweep(scenario, cancel=None, faults=("raise_before",), ports=("disk",)).assert_ok()
    assert ["disk.open#1", "disk.write#1", "disk.fsync#1", "disk.rename#1", "disk.open#2", "disk.fsync#2"] == [
        text.partition("] ")[2].partition(" is")[0] for text in broken
    ]


def test_files_elsewhere_are_left_alone():
    """Inside a run and after it Python's own functions do their work."""
    before = (builtins.open, io.open, os.open, os.replace, os.fsync)

    async def scenario(sim: Simulation) -> None:
        sim.disk()
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "a"
            place.write_text("x")
            os.replace(place, Path(folder) / "b")
            assert "x" == (Path(folder) / "b").read_text()
            with pytest.raises(OSError, match="file system of its own"):
                os.rename(Path(folder) / "b", sim.disk().path / "b")

    sweep(scenario, cancel=None).assert_ok()
    assert before == (builtins.open, io.open, os.open, os.replace, os.fsync)


@pytest.mark.parametrize("mode", ["w", "w+", "a", "a+", "x", "r+", "wb", "rb+", "xb", "ab"])
def test_every_mode_writes_as_the_real_open_does(mode, tmp_path):
    """The same calls on a disk and beside it leave the same bytes."""
    results: list[bytes] = []

    def use(folder: Path) -> bytes:
        path = folder / "f"
        if "r" in mode:
            path.write_bytes(b"0123456789")
        data = b"ab\ncd" if "b" in mode else "ab\ncd"
        with open(path, mode) as file:
            file.write(data)
            file.seek(1)
            file.write(data[:1])
            file.truncate(4)
        return path.read_bytes()

    async def scenario(sim: Simulation) -> None:
        results.append(use(sim.disk().path))

    sweep(scenario, cancel=None).assert_ok()
    assert use(tmp_path) == results[0]


def test_a_folder_goes_with_its_run():
    """Nothing is left in the temporary folder of the machine."""
    paths: list[Path] = []

    async def scenario(sim: Simulation) -> None:
        paths.append(sim.disk().path)
        assert paths[-1].is_dir()

    sweep(scenario, cancel=None).assert_ok()
    assert [] == [path for path in paths if path.exists()]


def test_a_file_operation_in_a_thread_can_be_broken():
    """There is no current task in a thread, and still the fault is delivered."""
    broken: list[str] = []

    async def scenario(sim: Simulation) -> None:
        folder = sim.disk().path
        try:
            await trio.to_thread.run_sync(save_carefully, folder, "one")
        except OSError as error:
            broken.append(str(error))

    report = sweep(scenario, cancel=None, faults=("raise_before",), ports=("disk",))
    report.assert_ok()
    assert 6 == len(broken) == report.delivered

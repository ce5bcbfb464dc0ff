"""``pytest --youyou-sweep`` on test suites written for it, each run by pytest itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

QUIET = ("-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist")
BAD_CLEAN_UP = """
import trio

async def test_bad():
    try:
        await trio.sleep(1)
    finally:
        if trio.current_effective_deadline() == -float("inf"):
            raise ValueError("bad clean-up")
"""


@pytest.fixture
def suite(pytester):
    """A folder whose tests pytest-trio runs."""
    pytester.makeini("[pytest]\ntrio_mode = true\n")
    return pytester


def swept(suite, *options):
    """Pytest's run of the suite, with the sweep."""
    return suite.runpytest_inprocess(*QUIET, "--youyou-sweep", *options)


def summary(result) -> list[str]:
    """What the sweep said of itself."""
    lines = result.outlines
    start = next(i for i, line in enumerate(lines) if "youyou sweep" in line) + 1
    return [line.strip() for line in lines[start:] if line.strip().startswith(("tests swept", "not swept"))]


def test_a_test_that_cleans_up_passes(suite):
    """Async fixtures, a nursery, tmp_path and a clock that jumps by itself are all there in every run."""
    suite.makepyfile(
        """
        import pytest, trio

        @pytest.fixture
        async def server(nursery):
            async def serve(task_status=trio.TASK_STATUS_IGNORED):
                task_status.started()
                await trio.sleep_forever()
            await nursery.start(serve)
            yield "server"

        @pytest.fixture
        async def client(server):
            yield server + "'s client"

        async def test_good(server, client, tmp_path, autojump_clock):
            (tmp_path / "x").mkdir()
            assert client == "server's client"
            await trio.sleep(1)
        """
    )
    result = swept(suite)
    result.assert_outcomes(passed=1)
    assert summary(result)[0].startswith("tests swept: 1 (runs: ")
    assert summary(result)[0].endswith("failed: 0, not swept: 0")


def test_a_test_that_cleans_up_badly_fails_with_a_token(suite):
    """The report says what was raised, where the cancel struck and how to replay it."""
    suite.makepyfile(BAD_CLEAN_UP)
    result = swept(suite)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ValueError: bad clean-up", "*injected: cancel of test*", "*replay: YOUYOU_REPLAY=*"])


@pytest.mark.long
def test_a_failure_is_tried_first_the_next_time(suite):
    """Its token is kept; once the test is repaired it is forgotten."""
    test = suite.makepyfile(BAD_CLEAN_UP)
    swept(suite)
    assert [".gitignore", "test_bad"] == sorted(file.name.partition("-")[0] for file in kept(suite))
    swept(suite).stdout.fnmatch_lines(["*replay of test_bad*; 1 runs of *"])
    test.write_text(BAD_CLEAN_UP.replace("raise", "assert True,"))
    swept(suite).assert_outcomes(passed=1)
    assert [".gitignore"] == [f.name for f in kept(suite)]


def kept(suite) -> list[Path]:
    """The files in the folder of tokens."""
    return list((suite.path / ".youyou").iterdir())


@pytest.mark.long
def test_fixtures_of_a_function_are_made_anew_for_each_run(suite):
    """What one run leaves in a fixture is not there in the next; what a module shares is."""
    suite.makepyfile(
        """
        import pytest, trio

        @pytest.fixture
        def box():
            return []

        @pytest.fixture(scope="module")
        def shared():
            return []

        async def test_box(box, shared):
            shared.append(1)
            box.append(1)
            await trio.sleep(1)
            assert box == [1]

        def test_there_were_many_runs(shared):
            assert len(shared) > 3
        """
    )
    swept(suite).assert_outcomes(passed=2)


def test_skip_and_xfail_are_respected(suite):
    """A test that did not pass by itself is not swept."""
    suite.makepyfile(
        """
        import pytest, trio

        async def test_skipped():
            await trio.sleep(0)
            pytest.skip("not here")

        @pytest.mark.xfail(strict=True)
        async def test_fails():
            await trio.sleep(0)
            assert 0
        """
    )
    result = swept(suite)
    result.assert_outcomes(skipped=1, xfailed=1)
    assert ["tests swept: 0 (runs: 0), failed: 0, not swept: 0"] == summary(result)


def test_a_method_of_a_class_is_swept(suite):
    """With its set-up, once a run."""
    suite.makepyfile(
        """
        import trio

        class TestIt:
            def setup_method(self):
                self.seen = []

            async def test_it(self):
                self.seen.append(1)
                await trio.sleep(0)
                assert self.seen == [1]
        """
    )
    result = swept(suite)
    result.assert_outcomes(passed=1)
    assert summary(result)[0].startswith("tests swept: 1 ")


def test_a_test_that_cannot_be_swept_passes_and_is_named(suite):
    """A clock driven by hand would be another one in the simulation; the reason stands in the summary."""
    suite.makepyfile(
        """
        import trio

        async def test_clock(mock_clock):
            mock_clock.jump(10)
            await trio.sleep(0)
        """
    )
    result = swept(suite)
    result.assert_outcomes(passed=1)
    assert [
        "tests swept: 0 (runs: 0), failed: 0, not swept: 1",
        "not swept: 1, because fixture mock_clock drives the clock by hand",
    ] == summary(result)


@pytest.mark.long
def test_a_page_is_written_for_a_failure(suite):
    """Into the folder that was named."""
    suite.makepyfile(BAD_CLEAN_UP)
    swept(suite, "--youyou-html=pages")
    [page] = (suite.path / "pages").iterdir()
    assert "bad clean-up" in page.read_text()


def test_given_over_swept_works(suite):
    """Hypothesis chooses the values, the sweep runs for each of them."""
    suite.makepyfile(
        """
        import trio
        from hypothesis import given, settings, strategies as st
        from youyou.testing import swept

        seen = set()

        @settings(max_examples=5, deadline=None, database=None)
        @given(number=st.integers(0, 3))
        @swept
        async def test_it(sim, number):
            seen.add(number)
            await trio.sleep(number)

        def test_several():
            assert len(seen) > 1
        """
    )
    suite.runpytest_inprocess(*QUIET).assert_outcomes(passed=2)


def test_nothing_of_the_kit_is_loaded_unasked():
    """Pytest loads the plugin in every run; without its options that costs no import of the kit."""
    code = "import sys, youyou.pytest_plugin; print([m for m in sys.modules if m.startswith('youyou.testing')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "[]" == done.stdout.strip()


def test_tests_of_anyio_are_swept_where_trio_is_their_backend(pytester):
    """With sync fixtures; those that anyio runs in a loop of its own are left out in words."""
    pytester.makeini("[pytest]\ntrio_mode = false\n")
    pytester.makepyfile(
        """
        import anyio, pytest, trio

        pytestmark = pytest.mark.anyio

        @pytest.fixture
        async def running():
            return 1

        async def test_good(tmp_path):
            await anyio.sleep(0.001)

        async def test_bad():
            try:
                await anyio.sleep(0.001)
            except BaseException as error:
                if "trio" in type(error).__module__:
                    raise ValueError("bad clean-up")
                raise

        async def test_served(running):
            await anyio.sleep(0.001)
        """
    )
    result = swept(pytester)
    result.assert_outcomes(passed=5, failed=1)
    assert summary(result)[0].startswith("tests swept: 2 ")
    assert "not swept: 1, because anyio runs its async fixtures" in summary(result)


def test_a_test_that_waits_for_nothing_is_left_out(suite):
    """Nothing was shown about it, which is not its fault."""
    suite.makepyfile(
        """
        async def test_at_once():
            assert 1
        """
    )
    result = swept(suite)
    result.assert_outcomes(passed=1)
    assert "not swept: 1, because it waits for nothing that a cancellation would stop" in summary(result)


@pytest.mark.long
def test_a_mere_note_about_the_plain_run_leaves_no_test_out(suite):
    """A cancellation that it swallows by itself is worth a note, and the sweep goes on."""
    suite.makepyfile(
        """
        import trio

        async def test_swallows():
            with trio.move_on_after(1):
                try:
                    await trio.sleep(5)
                except trio.Cancelled:
                    pass
            await trio.sleep(1)
        """
    )
    result = swept(suite)
    assert summary(result)[0].startswith("tests swept: 1 ")

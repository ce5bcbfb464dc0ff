"""The only module that touches Trio's internals: who runs next, what a task is woken with, threads, channels, sockets.

Everything is dispatched on the thread that runs a simulation, so every other Trio loop in the process behaves as if
this module had never been imported. `check_trio` says in one sentence which internal has moved; it never lets a run go
wrong quietly.
"""

from __future__ import annotations

import ctypes
import os
import random
import sys
import threading
from collections.abc import Callable, Iterator, MutableSequence
from types import FrameType
from typing import Any, NoReturn, Protocol

import attrs
import outcome
import trio
import trio._core._run as trio_run
import trio._threads
import trio.testing

Task = trio.lowlevel.Task
trio_threads: Any = trio._threads


class Scheduler(Protocol):
    """What a simulated thread has in place of Trio's coin."""

    def order(self, batch: list[Task]) -> None:
        """Put the runnable tasks into the order in which they shall run. Must never raise."""

    def time(self) -> float:
        """Virtual seconds since the beginning of the run."""

    def start_thread(
        self, work: Callable[[], Any], deliver: Callable[[outcome.Outcome[Any]], object], name: str
    ) -> None:
        """Run ``work`` in a thread, and give its outcome to ``deliver``."""

    def sends_itself_a_signal(self) -> None:
        """The program sends a signal to its own process."""

    def deadly_signal(self, name: str) -> None:
        """Such a signal arrived where nobody receives it, which would have ended the process."""

    def sleep(self, seconds: float) -> None:
        """A blocking sleep of the program: so much virtual time passes, and nothing else happens meanwhile."""


class TrioMoved(RuntimeError):
    """This version of Trio keeps something elsewhere than the simulation expects; use another version of either."""


class RealIORefused(RuntimeError):
    """A simulated program touched a real socket, pipe or process, which no seed can replay."""


class Current(threading.local):
    """The simulation that owns this thread, if any."""

    scheduler: Scheduler | None = None


current: Current = Current()


class DispatchingRandom(random.Random):
    """Trio's random source forevery loop but the simulated ones."""

    def __init__(self, original: random.Random) -> None:
        self.original = original

    def shuffle(self, x: MutableSequence[Any]) -> None:
        if current.scheduler is None:
            self.original.shuffle(x)
        else:
            current.scheduler.order(x)  # type: ignore[arg-type]  # Trio hands over its list of runnable tasks

    def random(self) -> float:
        return self.original.random()

    def getrandbits(self, k: int, /) -> int:
        return self.original.getrandbits(k)

    def seed(self, *args: Any, **kwargs: Any) -> None:
        self.original.seed(*args, **kwargs)

    def getstate(self) -> tuple[Any, ...]:
        return self.original.getstate()

    def setstate(self, state: tuple[Any, ...]) -> None:
        self.original.setstate(state)


@attrs.define
class DispatchingFlag:
    """True for a simulated thread; what it was before forevery other."""

    before: object

    def __bool__(self) -> bool:
        return current.scheduler is not None or bool(self.before)


def start_thread(
    fn: Callable[[], Any], deliver: Callable[[outcome.Outcome[Any]], object], name: str | None = None
) -> None:
    """In a simulation the run decides when the thread goes on."""
    if current.scheduler is None:
        trio.lowlevel.start_thread_soon(fn, deliver, name)
    else:
        current.scheduler.start_thread(fn, deliver, name or "thread")


_REAL = {
    "os.system": "runs a real command",
    "os.exec": "turns the process into another",
    "os.spawn": "starts a real process",
    "os.startfile": "opens a real file with its program",
    "os.forkpty": "forks the process",
    "os.killpg": "sends a real signal",
    "pty.spawn": "starts a real process",
    "socket.__new__": "opens a real socket",
    "socket.gethostbyname": "looks up a real host name",
    "socket.gethostbyaddr": "looks up a real host name",
    "socket.getnameinfo": "looks up a real host name",
    "socket.sendto": "sends through a real socket",
    "socket.sendmsg": "sends through a real socket",
    "webbrowser.open": "opens a real browser",
    "ftplib.connect": "connects to a real server",
    "imaplib.open": "connects to a real server",
    "poplib.connect": "connects to a real server",
    "smtplib.connect": "connects to a real server",
    "telnetlib.Telnet.open": "connects to a real server",
    "urllib.Request": "asks a real server",
    "socket.connect": "connects a real socket",
    "socket.bind": "binds a real socket",
    "socket.getaddrinfo": "looks up a real host name",
    "subprocess.Popen": "starts a real process",
    "os.posix_spawn": "starts a real process",
    "os.fork": "forks the process",
}


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse what would reach the outside world behind Trio's back, such as a blocking client in a thread."""
    if event == "os.kill" and current_check.is_simulated is not None:
        if arguments[0] != os.getpid():
            _refuse("sends a real signal")
        if (scheduler := current.scheduler) is not None:
            scheduler.sends_itself_a_signal()
    if event in _REAL and current_check.is_simulated is not None and not _is_parsing_an_address(event):
        _refuse(_REAL[event])


def _is_parsing_an_address(event: str) -> bool:
    """Whether Trio asks, as it does before any look-up, if a host is an address already: nothing leaves the process."""
    # This function, the hook, getaddrinfo of the standard library, getaddrinfo of Trio.
    return event == "socket.getaddrinfo" and sys._getframe(3).f_code is trio.socket.getaddrinfo.__code__


_installing = threading.Lock()
_refusing: dict[type, type] = {}


def install() -> None:
    """Put the dispatchers in place, once per process."""
    with _installing:
        if not isinstance(trio_run._r, DispatchingRandom):
            check_trio()
            trio_run._r = DispatchingRandom(trio_run._r)
            trio_threads.start_thread_soon = start_thread
            sys.addaudithook(_audit)
        # Hypothesis sets the plain flag when it is imported, perhaps after us.
        if not isinstance(trio_run._ALLOW_DETERMINISTIC_SCHEDULING, DispatchingFlag):
            before = trio_run._ALLOW_DETERMINISTIC_SCHEDULING
            trio_run._ALLOW_DETERMINISTIC_SCHEDULING = DispatchingFlag(before)  # type: ignore[misc,assignment]  # Final


NEEDED: tuple[tuple[str, str], ...] = (
    ("lowlevel", "in_trio_run"),
    ("lowlevel", "start_thread_soon"),
    ("Cancelled", "source"),
    ("Cancelled", "reason"),
    ("_core._run", "_r"),
    ("_core._run", "_ALLOW_DETERMINISTIC_SCHEDULING"),
    ("_core._run", "GLOBAL_RUN_CONTEXT"),
    ("_core._run.Runner", "asyncgens"),
    ("_core._run.Runner", "deadlines"),
    ("_core._run.Runner", "deliver_ki"),
    ("_core._run.Runner", "io_manager"),
    ("_core._run.Runner", "runq"),
    ("_core._run.Runner", "spawn_system_task"),
    ("_core._run.Runner", "tasks"),
    ("_core._run.Runner", "waiting_for_idle"),
    ("_core._run.Deadlines", "next_deadline"),
    ("_core._run.AsyncGenerators", "alive"),
    ("_core._run.Task", "_cancel_status"),
    ("_core._run.Task", "_counter"),
    ("_core._run.Task", "_next_send"),
    ("_core._run.CancelScope", "_cancel_status"),
    ("_core._run.CancelStatus", "_parent"),
    ("_core._run.CancelStatus", "_scope"),
    ("_channel", "__file__"),
    ("_channel.MemorySendChannel", "_state"),
    ("_channel.MemorySendChannel", "send_nowait"),
    ("_channel.MemoryReceiveChannel", "_state"),
    ("_channel.MemoryReceiveChannel", "receive_nowait"),
    ("_channel.MemoryChannelState", "receive_tasks"),
    ("_threads", "start_thread_soon"),
    ("_threads", "_send_message_to_trio"),
)
"""Every part of Trio that is private, or newer than Trio itself, and that a run relies on: owner, name."""


def check_trio() -> None:
    """Name the first part of Trio that is not where the simulation needs it. Comes before any other use of them.

    Raises:
        TrioMoved: with the name of what is missing.
    """
    for owner, name in NEEDED:
        if not _has(owner, name):
            raise TrioMoved(
                f"trio {trio.__version__} has no {owner}.{name}; youyou.testing needs another version of Trio"
            )


def _has(owner: str, name: str) -> bool:
    found: Any = trio
    for part in owner.split("."):
        found = getattr(found, part, None)
    # A class of attrs without slots shows its fields to attrs alone.
    fields = {field.name for field in attrs.fields(found)} if attrs.has(found) else set()
    return hasattr(found, name) or name in fields


def runner() -> Any:
    """The run loop of this thread."""
    return trio_run.GLOBAL_RUN_CONTEXT.runner


def running_task() -> Task | None:
    """The task whose step this thread is in, if any."""
    found: Task | None = getattr(trio_run.GLOBAL_RUN_CONTEXT, "task", None)
    return found


def virtual_clock() -> trio.testing.MockClock:
    """A clock that stands still until every task sleeps, and asks no other clock for the time."""
    clock: Any = trio.testing.MockClock(autojump_threshold=0)
    if not hasattr(clock, "_real_clock"):
        raise TrioMoved(f"trio {trio.__version__} has no MockClock._real_clock; youyou.testing needs another version")
    clock._real_clock = _stands_still
    made: trio.testing.MockClock = clock
    return made


def _stands_still() -> float:
    return 0.0


def runnable(loop: Any) -> Any:
    """The queue of tasks that run next."""
    return loop.runq


def alive(loop: Any) -> Any:
    """The set of all tasks of this loop that have not ended."""
    return loop.tasks


def spawn_outside(loop: Any, work: Callable[..., Any], *args: Any, name: str) -> Task:
    """Run ``work(*args)`` in a task of the loop itself, which no scope of the program reaches."""
    made: Task = loop.spawn_system_task(work, *args, name=name)
    return made


def is_idle(loop: Any) -> bool:
    """Nothing can run, no deadline is set, nobody waits for quiet: only the outside world could wake this program."""
    return not loop.runq and loop.deadlines.next_deadline() == float("inf") and not loop.waiting_for_idle


def thrown_into(task: Task) -> trio.Cancelled | KeyboardInterrupt | None:
    """The `trio.Cancelled` or Ctrl-C that ``task`` is about to be woken with, if that is what wakes it."""
    send = task._next_send
    if type(send) is outcome.Error and isinstance(send.error, trio.Cancelled | KeyboardInterrupt):
        return send.error
    return None


def caught_by(task: Task) -> trio.CancelScope | None:
    """The scope that is to catch a `trio.Cancelled` in ``task``: the outermost cancelled one that no shield hides."""
    found = None
    for scope in scopes_around(task):
        if scope.cancel_called:
            found = scope
        if scope.shield:
            break
    return found


def errors_of_children(task: Task) -> int:
    """How many errors the nursery that ``task`` belongs to has collected so far."""
    nursery: Any = task.parent_nursery
    return len(getattr(nursery, "_pending_excs", ()))


def throw_into(task: Task, error: BaseException) -> None:
    """Wake ``task``, whose turn it is, with ``error`` instead of what it waited for."""
    if task._next_send is not None:
        task._next_send = outcome.Error(error)


def has_exited(scope: trio.CancelScope) -> bool:
    """Whether nobody is inside ``scope``."""
    return scope._cancel_status is None


def scopes_around(task: Task) -> Iterator[trio.CancelScope]:
    """The cancel scopes that ``task`` is in, innermost first."""
    status: Any = task._cancel_status
    while status is not None:
        yield status._scope
        status = status._parent


def unshield(task: Task) -> None:
    """Open every shield around ``task``: the last way to end a program that is stuck behind one."""
    for scope in scopes_around(task):
        if scope.shield:
            scope.shield = False


def leak_on_purpose(coroutine: object) -> None:
    """Never let go of ``coroutine``: closing one that swallows everything, outside its loop, would go on forever."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(coroutine))


def interrupt(loop: Any) -> None:
    """Deliver Ctrl-C as the signal handler of this loop would; works in every thread."""
    loop.deliver_ki()


def open_generators(loop: Any) -> Iterator[Any]:
    """Async generators that were started and neither finished nor closed."""
    for generator in loop.asyncgens.alive:
        if generator.ag_frame is not None and not generator.ag_running:
            yield generator


def refuse_real_io(loop: Any, is_simulated: Callable[[Task], bool]) -> None:
    """Make every wait for a real file descriptor of this loop an error in tasks of the simulated program."""
    trio.socket.set_custom_socket_factory(NoSockets())
    trio.socket.set_custom_hostname_resolver(NoNames())
    kind = type(loop.io_manager)
    if kind not in _refusing:
        _refusing[kind] = _refusing_manager(kind)
    loop.io_manager.__class__ = _refusing[kind]
    current_check.is_simulated = is_simulated


class CurrentCheck(threading.local):
    is_simulated: Callable[[Task], bool] | None = None


current_check: CurrentCheck = CurrentCheck()


def _refuse(what: str) -> NoReturn:
    raise RealIORefused(
        f"a simulated program {what}; put the real thing behind sim.port(...) and give the simulation a stand-in"
    )


def _refusing_manager(kind: type) -> type:
    def guard(name: str) -> Callable[..., Any]:
        original = getattr(kind, name)

        async def waiting(self: Any, fd: Any) -> Any:
            check = current_check.is_simulated
            if check is not None and check(trio.lowlevel.current_task()):
                _refuse("waits for a real file descriptor")
            return await original(self, fd)

        return waiting

    body = {"__slots__": (), "wait_readable": guard("wait_readable"), "wait_writable": guard("wait_writable")}
    return type(f"Refusing{kind.__name__}", (kind,), body)


class NoSockets(trio.abc.SocketFactory):
    """Refuses every socket."""

    def socket(self, family: Any = None, type: Any = None, proto: Any = None) -> NoReturn:
        """Refuse."""
        _refuse("opens a real socket")


class NoNames(trio.abc.HostnameResolver):
    """Refuses every look-up of a name."""

    async def getaddrinfo(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse."""
        _refuse("looks up a real host name")

    async def getnameinfo(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse."""
        _refuse("looks up a real host name")


class ChannelListener(Protocol):
    """Hears of each value that passes through a memory channel; a channel is told by the state that both ends share."""

    def sent(self, state: Any, value: object, task: Task | None, to: Task | None) -> None:
        """``value`` entered a channel; ``to`` was already waiting for it."""

    def taken(self, state: Any, value: object, task: Task | None) -> None:
        """``value`` left a channel without waiting."""


class ChannelTracer:
    """Tells ``listener`` of every value while the block lasts; a context manager.

    The two non-blocking halves of Trio's channels are replaced on their classes; in a thread without a simulation they
    do what they did.
    """

    def __init__(self, listener: ChannelListener) -> None:
        self._listener = listener

    def __enter__(self) -> None:
        self._originals = (trio.MemorySendChannel.send_nowait, trio.MemoryReceiveChannel.receive_nowait)
        _replace(self._sending(self._originals[0]), self._receiving(self._originals[1]))

    def __exit__(self, *_: object) -> None:
        _replace(*self._originals)

    def _sending(self, original: Callable[..., Any]) -> Callable[..., Any]:
        listener = self._listener

        def send_nowait(channel: Any, value: Any) -> None:
            if current.scheduler is None:
                original(channel, value)
                return
            state = channel._state
            to = next(iter(state.receive_tasks), None)
            try:
                original(channel, value)
            except trio.WouldBlock:
                if _called_by_send(sys._getframe(1)):
                    listener.sent(state, value, running_task(), None)
                raise
            listener.sent(state, value, running_task(), to)

        return send_nowait

    def _receiving(self, original: Callable[..., Any]) -> Callable[..., Any]:
        listener = self._listener

        def receive_nowait(channel: Any) -> Any:
            value = original(channel)
            if current.scheduler is not None:
                listener.taken(channel._state, value, running_task())
            return value

        return receive_nowait


def channel_state(channel: Any) -> object:
    """What both ends of a memory channel, and their clones, share."""
    return channel._state


def _replace(send_nowait: Any, receive_nowait: Any) -> None:
    """Give both kinds of channel other methods; ``Any``, because no type checker likes that."""
    sending: Any = trio.MemorySendChannel
    receiving: Any = trio.MemoryReceiveChannel
    sending.send_nowait, receiving.receive_nowait = send_nowait, receive_nowait


def _called_by_send(caller: FrameType) -> bool:
    """Whether Trio's own ``send`` calls, and so will wait for room; told by its file, which no program shares."""
    channels: str = _private("_channel").__file__
    return caller.f_code.co_name == "send" and caller.f_code.co_filename == channels


def _private(module: str) -> Any:
    return getattr(trio, module)

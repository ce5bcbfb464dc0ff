"""Every error of youyou, one class per code (semantics 3).

Exception
└─ AgentError                        code, message, retryable, source; str: "[CODE] message"
   ├─ building an agent
   │  ├─ NoModelProvider             ├─ NameConflict            ├─ SkillDependencyNotMet
   │  ├─ PluginInitFailed            ├─ StorageDuplicate        ├─ InvalidDefaultModel
   │  ├─ InvalidConfig               └─ ProfileNotFound
   ├─ using it
   │  ├─ SessionBusy                 ├─ TurnBusy                ├─ SessionNotFound
   │  ├─ SessionClosed               ├─ AgentClosed             ├─ AgentCrashed
   │  ├─ InvalidInput                ├─ ContentNotSupported     ├─ SkillNotFound
   │  ├─ ModelNotSupported           ├─ HookAborted             ├─ PluginError
   │  ├─ WouldDeadlock               ├─ WrongTrioRun            ├─ RequestCancelled
   │  └─ HostLost
   ├─ talking to a model
   │  ├─ ProviderError               ├─ ProviderTimeout         ├─ StreamInterrupted
   │  ├─ ContextLengthExceeded       ├─ EmptyResponse           ├─ InvalidOutput
   │  └─ CompactError
   ├─ running tools
   │  ├─ ToolExecutionError          ├─ ToolTimeout             ├─ ToolNotFound
   │  └─ InvalidToolArguments        └─ MaxToolCallsExceeded
   └─ storing
      ├─ StorageError                ├─ SessionTaken            └─ MemoryStorageError
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar

from .text import clean_text


class ErrorSource(StrEnum):
    """Which part the error came from."""

    AGENT = "agent"
    PROVIDER = "provider"
    TOOL = "tool"
    PLUGIN = "plugin"
    STORAGE = "storage"


class ErrorCode(StrEnum):
    """What went wrong, for machines."""

    NO_MODEL_PROVIDER = "NO_MODEL_PROVIDER"
    NAME_CONFLICT = "NAME_CONFLICT"
    SKILL_DEPENDENCY_NOT_MET = "SKILL_DEPENDENCY_NOT_MET"
    PLUGIN_INIT_FAILED = "PLUGIN_INIT_FAILED"
    STORAGE_DUPLICATE = "STORAGE_DUPLICATE"
    INVALID_DEFAULT_MODEL = "INVALID_DEFAULT_MODEL"
    INVALID_CONFIG = "INVALID_CONFIG"
    PROFILE_NOT_FOUND = "PROFILE_NOT_FOUND"
    SESSION_BUSY = "SESSION_BUSY"
    TURN_BUSY = "TURN_BUSY"
    SESSION_NOT_FOUND = "SESSION_NOT_FOUND"
    SESSION_TAKEN = "SESSION_TAKEN"
    SESSION_CLOSED = "SESSION_CLOSED"
    HOST_LOST = "HOST_LOST"
    AGENT_CLOSED = "AGENT_CLOSED"
    AGENT_CRASHED = "AGENT_CRASHED"
    INVALID_INPUT = "INVALID_INPUT"
    CONTENT_NOT_SUPPORTED = "CONTENT_NOT_SUPPORTED"
    SKILL_NOT_FOUND = "SKILL_NOT_FOUND"
    MODEL_NOT_SUPPORTED = "MODEL_NOT_SUPPORTED"
    HOOK_ABORTED = "HOOK_ABORTED"
    PLUGIN_ERROR = "PLUGIN_ERROR"
    WOULD_DEADLOCK = "WOULD_DEADLOCK"
    WRONG_TRIO_RUN = "WRONG_TRIO_RUN"
    REQUEST_CANCELLED = "REQUEST_CANCELLED"
    PROVIDER_ERROR = "PROVIDER_ERROR"
    PROVIDER_TIMEOUT = "PROVIDER_TIMEOUT"
    STREAM_INTERRUPTED = "STREAM_INTERRUPTED"
    CONTEXT_LENGTH_EXCEEDED = "CONTEXT_LENGTH_EXCEEDED"
    EMPTY_RESPONSE = "EMPTY_RESPONSE"
    INVALID_OUTPUT = "INVALID_OUTPUT"
    COMPACT_ERROR = "COMPACT_ERROR"
    TOOL_EXECUTION_ERROR = "TOOL_EXECUTION_ERROR"
    TOOL_TIMEOUT = "TOOL_TIMEOUT"
    TOOL_NOT_FOUND = "TOOL_NOT_FOUND"
    INVALID_TOOL_ARGUMENTS = "INVALID_TOOL_ARGUMENTS"
    MAX_TOOL_CALLS_EXCEEDED = "MAX_TOOL_CALLS_EXCEEDED"
    STORAGE_ERROR = "STORAGE_ERROR"
    MEMORY_ERROR = "MEMORY_ERROR"


_PROVIDER = ErrorSource.PROVIDER, True

# (source, retryable) of a code; a code that is not here comes from the agent and is not worth a retry.
TABLE: dict[ErrorCode, tuple[ErrorSource, bool]] = {
    ErrorCode.PROVIDER_ERROR: _PROVIDER,
    ErrorCode.PROVIDER_TIMEOUT: _PROVIDER,
    ErrorCode.STREAM_INTERRUPTED: _PROVIDER,
    ErrorCode.EMPTY_RESPONSE: (ErrorSource.PROVIDER, False),
    ErrorCode.INVALID_OUTPUT: (ErrorSource.PROVIDER, False),
    ErrorCode.CONTEXT_LENGTH_EXCEEDED: (ErrorSource.PROVIDER, False),
    ErrorCode.TOOL_EXECUTION_ERROR: (ErrorSource.TOOL, False),
    ErrorCode.TOOL_TIMEOUT: (ErrorSource.TOOL, False),
    ErrorCode.TOOL_NOT_FOUND: (ErrorSource.TOOL, False),
    ErrorCode.INVALID_TOOL_ARGUMENTS: (ErrorSource.TOOL, False),
    ErrorCode.PLUGIN_INIT_FAILED: (ErrorSource.PLUGIN, False),
    ErrorCode.PLUGIN_ERROR: (ErrorSource.PLUGIN, False),
    ErrorCode.HOOK_ABORTED: (ErrorSource.PLUGIN, False),
    ErrorCode.STORAGE_ERROR: (ErrorSource.STORAGE, False),
    ErrorCode.SESSION_TAKEN: (ErrorSource.STORAGE, False),
    ErrorCode.MEMORY_ERROR: (ErrorSource.STORAGE, False),
}


class AgentError(Exception):
    """Base of every error that youyou raises or reports.

    Synopsis::

        except youyou.AgentError as error:
            if error.retryable: ...
            print(error)                    # [SESSION_BUSY] session 4f2c is still open; close it first

    Args:
        message: what was wrong and what to do instead.
        retryable: whether the same request may succeed later; by default what the table says of the code.
        source: the part it came from; by default what the table says.
        retry_after_ms: how long the other side asked to wait.

    Compares and pickles by value (semantics 3).
    """

    code: ErrorCode
    """What went wrong, for programs; each code has a class of its own."""
    message: str
    """What was wrong and what to do instead, for people."""
    source: ErrorSource
    """The part of the system that it came from."""
    retryable: bool
    """Whether the same request may succeed later."""
    retry_after_ms: int | None
    """Milliseconds that the other side asked to wait. None: it did not say."""
    by_code: ClassVar[dict[ErrorCode, type[AgentError]]] = {}
    """The class of each code."""
    details: ClassVar[tuple[str, ...]] = ()
    """Names of the texts that this class has besides: keyword arguments, compared and pickled with the rest."""

    def __init__(
        self,
        message: str = "",
        *,
        retryable: bool | None = None,
        source: ErrorSource | None = None,
        retry_after_ms: int | None = None,
    ) -> None:
        # The base class has no code, so raising it would produce an error that no table knows.
        if not hasattr(self, "code"):
            raise TypeError("raise one of the subclasses of AgentError, or use AgentError.of(code, message)")
        usual_source, usual_retryable = TABLE.get(self.code, (ErrorSource.AGENT, False))
        message = self.message = clean_text(str(message))
        self.source = usual_source if source is None else ErrorSource(source)
        self.retryable = usual_retryable if retryable is None else retryable
        self.retry_after_ms = retry_after_ms
        super().__init__(message)

    def __init_subclass__(cls, code: ErrorCode | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if code is not None:  # A host's own subclass has the code of its parent and stays out of the table.
            cls.code = code
            cls.by_code[code] = cls

    @classmethod
    def of(
        cls,
        code: ErrorCode,
        message: str,
        *,
        retryable: bool | None = None,
        source: ErrorSource | None = None,
        retry_after_ms: int | None = None,
    ) -> AgentError:
        """The error of this code."""
        kind = cls.by_code[ErrorCode(code)]
        return kind(message, retryable=retryable, source=source, retry_after_ms=retry_after_ms)

    def reported_by(self, source: ErrorSource) -> AgentError:
        """The error itself, from ``source`` unless it says already that it is not the agent's own."""
        # Of some codes only who raised the error tells the source: a provider may refuse content as the agent may.
        if self.source is ErrorSource.AGENT:
            self.source = source
        return self

    def _value(self) -> tuple[object, ...]:
        details = tuple(getattr(self, name) for name in self.details)
        return (self.code, self.message, self.retryable, self.source, self.retry_after_ms, *details)

    def __str__(self) -> str:
        return f"[{self.code}] {self.message}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message!r})"

    def __eq__(self, other: object) -> bool:
        return self._value() == other._value() if isinstance(other, AgentError) else NotImplemented

    # Defining `__eq__` takes the inherited hash away, and exceptions must be hashable: traceback printing keeps a set
    # of them.
    def __hash__(self) -> int:
        return hash(self._value())

    # The inherited form calls the class with ``args`` alone and would lose the keyword arguments.
    def __reduce__(self) -> tuple[Any, ...]:
        return (_revive, (self.code, self.message, self.retryable, self.source, self.retry_after_ms, details_of(self)))


def details_of(error: AgentError) -> dict[str, str]:
    """What the class of ``error`` tells besides what every error does."""
    return {name: str(getattr(error, name)) for name in error.details}


def _revive(
    code: str,
    message: str,
    retryable: bool,
    source: str,
    retry_after_ms: int | None,
    details: Mapping[str, Any] | None = None,
) -> AgentError:
    kind = AgentError.by_code[ErrorCode(code)]
    known: dict[str, Any] = {name: str(value) for name, value in (details or {}).items() if name in kind.details}
    return kind(message, retryable=retryable, source=ErrorSource(source), retry_after_ms=retry_after_ms, **known)


class NoModelProvider(AgentError, code=ErrorCode.NO_MODEL_PROVIDER):
    """No model provider is registered."""


class NameConflict(AgentError, code=ErrorCode.NAME_CONFLICT):
    """Two things of one kind share a name."""


class SkillDependencyNotMet(AgentError, code=ErrorCode.SKILL_DEPENDENCY_NOT_MET):
    """A skill needs a tool that is not registered."""


class PluginInitFailed(AgentError, code=ErrorCode.PLUGIN_INIT_FAILED):
    """A plugin's ``initialize`` or ``apply`` raised."""


class StorageDuplicate(AgentError, code=ErrorCode.STORAGE_DUPLICATE):
    """A second storage of one kind is registered."""


class InvalidDefaultModel(AgentError, code=ErrorCode.INVALID_DEFAULT_MODEL):
    """The default model is not one of the registered models."""


class InvalidConfig(AgentError, code=ErrorCode.INVALID_CONFIG):
    """A value of the configuration or of a registration is out of range or of the wrong kind."""


class ProfileNotFound(AgentError, code=ErrorCode.PROFILE_NOT_FOUND):
    """No profile has this id and kind."""


class SessionBusy(AgentError, code=ErrorCode.SESSION_BUSY):
    """Another session of this agent is still open."""


class TurnBusy(AgentError, code=ErrorCode.TURN_BUSY):
    """Another turn of this session is still running."""


class SessionNotFound(AgentError, code=ErrorCode.SESSION_NOT_FOUND):
    """No stored session has this id, or there is no storage."""


class SessionClosed(AgentError, code=ErrorCode.SESSION_CLOSED):
    """The session is closed."""


class AgentClosed(AgentError, code=ErrorCode.AGENT_CLOSED):
    """The agent is closed."""


class AgentCrashed(AgentError, code=ErrorCode.AGENT_CRASHED):
    """A bug in the runtime: its cause says where."""


class InvalidInput(AgentError, code=ErrorCode.INVALID_INPUT):
    """The input cannot be sent as it is."""


class ContentNotSupported(AgentError, code=ErrorCode.CONTENT_NOT_SUPPORTED):
    """The model does not take this kind of content."""


class SkillNotFound(AgentError, code=ErrorCode.SKILL_NOT_FOUND):
    """No skill has this name."""


class ModelNotSupported(AgentError, code=ErrorCode.MODEL_NOT_SUPPORTED):
    """No registered provider has this model."""


class HookAborted(AgentError, code=ErrorCode.HOOK_ABORTED):
    """A hook refused."""


class PluginError(AgentError, code=ErrorCode.PLUGIN_ERROR):
    """A hook raised, or answered something it may not."""


class WouldDeadlock(AgentError, code=ErrorCode.WOULD_DEADLOCK):
    """A hook or tool waits for what waits for it."""


class WrongTrioRun(AgentError, code=ErrorCode.WRONG_TRIO_RUN):
    """A handle is used outside the Trio run it belongs to."""


class RequestCancelled(AgentError, code=ErrorCode.REQUEST_CANCELLED):
    """The turn was cancelled."""


class ProviderError(AgentError, code=ErrorCode.PROVIDER_ERROR):
    """The provider failed."""


class ProviderTimeout(AgentError, code=ErrorCode.PROVIDER_TIMEOUT):
    """The provider was silent for too long."""


class StreamInterrupted(AgentError, code=ErrorCode.STREAM_INTERRUPTED):
    """The provider's stream ended before the response did."""


class ContextLengthExceeded(AgentError, code=ErrorCode.CONTEXT_LENGTH_EXCEEDED):
    """The request does not fit the model's window."""


class EmptyResponse(AgentError, code=ErrorCode.EMPTY_RESPONSE):
    """The model answered with nothing, twice."""


class InvalidOutput(AgentError, code=ErrorCode.INVALID_OUTPUT):
    """The answer does not fit the schema that was asked for, also after the repair rounds (semantics 13)."""


class CompactError(AgentError, code=ErrorCode.COMPACT_ERROR):
    """History could not be made small enough."""


class ToolExecutionError(AgentError, code=ErrorCode.TOOL_EXECUTION_ERROR):
    """A tool raised or returned an error."""


class ToolTimeout(AgentError, code=ErrorCode.TOOL_TIMEOUT):
    """A tool ran longer than it may."""


class ToolNotFound(AgentError, code=ErrorCode.TOOL_NOT_FOUND):
    """No tool has this name."""


class InvalidToolArguments(AgentError, code=ErrorCode.INVALID_TOOL_ARGUMENTS):
    """The arguments do not fit the tool's schema."""


class MaxToolCallsExceeded(AgentError, code=ErrorCode.MAX_TOOL_CALLS_EXCEEDED):
    """The turn asked for more tool calls than it may."""


class StorageError(AgentError, code=ErrorCode.STORAGE_ERROR):
    """The session storage failed or was too slow."""


class SessionTaken(AgentError, code=ErrorCode.SESSION_TAKEN):
    """Another owner has the session (semantics 7).

    From an append it is final: somebody else has written into the log. From ``resume_session`` it is retryable, and
    ``retry_after_ms`` says how long the other's claim lasts at most.

    Args:
        owner: which agent has it, as ``session_opened`` in the log names it; empty where that is not known.
        address: where that agent is, as its ``AgentConfig.address`` says; empty where that is not known.
    """

    details: ClassVar[tuple[str, ...]] = ("owner", "address")
    owner: str
    address: str

    def __init__(
        self,
        message: str = "",
        *,
        retryable: bool | None = None,
        source: ErrorSource | None = None,
        retry_after_ms: int | None = None,
        owner: str = "",
        address: str = "",
    ) -> None:
        super().__init__(message, retryable=retryable, source=source, retry_after_ms=retry_after_ms)
        self.owner, self.address = owner, address

    @classmethod
    def written(cls, session_id: str, seq: int) -> SessionTaken:
        """For an append under a number that holds another event."""
        return cls(
            f"session {session_id!r} has another writer: its event {seq} is not the one of this writer; "
            "resume the session to go on with what is stored"
        )

    @classmethod
    def held(cls, session_id: str, owner: str, address: str, retry_after_ms: int) -> SessionTaken:
        """For a claim on a session that another owner has."""
        return cls(
            f"session {session_id!r} is open elsewhere ({address or owner}); close it there, try again in "
            f"{retry_after_ms} ms, or take it over with resume_session(id, steal=True)",
            retryable=True,
            retry_after_ms=retry_after_ms,
            owner=owner,
            address=address,
        )


class HostLost(AgentError, code=ErrorCode.HOST_LOST):
    """The process that had the session is gone, or does not answer (semantics 17). Open the session again.

    Args:
        session_id: the session.
        after: the number of the last event that was read; 0 where none was, or no turn was being read.
    """

    details: ClassVar[tuple[str, ...]] = ("session_id", "after")
    session_id: str
    after: int

    def __init__(
        self,
        message: str = "",
        *,
        retryable: bool | None = None,
        source: ErrorSource | None = None,
        retry_after_ms: int | None = None,
        session_id: str = "",
        after: int | str = 0,
    ) -> None:
        super().__init__(message, retryable=retryable, source=source, retry_after_ms=retry_after_ms)
        self.session_id, self.after = session_id, int(after)


class MemoryStorageError(AgentError, code=ErrorCode.MEMORY_ERROR):
    """The memory storage, or an extraction, failed or was too slow."""

"""Errors are values: they compare, hash, pickle, copy and travel as JSON (semantics 3)."""

from __future__ import annotations

import copy
import pickle

import pytest
from youyou import AgentError, ErrorCode, ErrorSource, ProviderError, SessionBusy, TurnBusy
from youyou.messages import errors
from youyou.messages.codec import from_json, to_json
from youyou.messages.errors import TABLE

every_code = pytest.mark.parametrize("code", ErrorCode, ids=str)
CARRIERS = {
    "pickle": lambda error: pickle.loads(pickle.dumps(error)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "json": lambda error: from_json(AgentError, to_json(error)),
}


@every_code
def test_each_code_has_its_class(code):
    """The class is the code in CamelCase, but for MEMORY_ERROR, which Python has another use for; it is public."""
    import youyou

    expected = "".join(word.capitalize() for word in code.split("_"))
    cls = AgentError.by_code[code]
    assert cls.__name__ == ("MemoryStorageError" if code is ErrorCode.MEMORY_ERROR else expected)
    assert getattr(youyou, cls.__name__) is cls
    assert cls.code is code


@every_code
def test_each_code_has_a_source_and_is_retryable_or_not(code):
    """The table says so; what it does not name comes from the agent and is not worth a retry."""
    error = AgentError.of(code, "text")
    assert (error.source, error.retryable) == TABLE.get(code, (ErrorSource.AGENT, False))
    assert str(error) == f"[{code}] text"
    assert error.args == ("text",)


def test_what_is_worth_a_retry():
    """Only failures of a provider that may pass."""
    retryable = {code for code in ErrorCode if AgentError.of(code, "").retryable}
    assert retryable == {ErrorCode.PROVIDER_ERROR, ErrorCode.PROVIDER_TIMEOUT, ErrorCode.STREAM_INTERRUPTED}


@every_code
@pytest.mark.parametrize("carrier", CARRIERS)
def test_an_error_survives_being_carried(code, carrier):
    """Class, code, message, retryability, source and wish to wait come back."""
    error = AgentError.of(code, "füß", retryable=True, retry_after_ms=7)
    error.source = ErrorSource.TOOL
    again = CARRIERS[carrier](error)

    assert type(again) is type(error)
    assert (again, hash(again)) == (error, hash(error))
    assert (again.message, again.retryable, again.source, again.retry_after_ms) == ("füß", True, ErrorSource.TOOL, 7)


@pytest.mark.parametrize(
    "other",
    [
        SessionBusy("b"),
        TurnBusy("a"),
        SessionBusy("a", retryable=True),
        SessionBusy("a", source=ErrorSource.TOOL),
        SessionBusy("a", retry_after_ms=1),
        "a",
        None,
        ValueError("a"),
    ],
    ids=repr,
)
def test_errors_differ_by_any_part(other):
    """Equal only if all parts are; unequal to anything else."""
    assert SessionBusy("a") == SessionBusy("a")
    assert SessionBusy("a") != other


def test_the_base_class_is_not_raised_itself():
    """An error without a code would tell nobody anything."""
    with pytest.raises(TypeError, match=r"AgentError\.of"):
        AgentError("what?")


def test_an_unknown_code_is_refused():
    """`AgentError.of` takes the codes there are."""
    with pytest.raises(ValueError, match="NO_SUCH_CODE"):
        AgentError.of("NO_SUCH_CODE", "text")


def test_a_message_can_always_be_encoded():
    """A lone surrogate in a message, which often quotes others, does not stop the error from being sent."""
    assert ProviderError("a\ud83d").message == "a\ufffd"
    assert from_json(AgentError, to_json(ProviderError("a\ud83d"))) == ProviderError("a\ufffd")


def test_the_tree_at_the_top_of_the_module_shows_every_class():
    """The drawing is complete."""
    missing = [cls.__name__ for cls in AgentError.by_code.values() if cls.__name__ not in errors.__doc__]
    assert missing == []


def test_a_host_may_subclass_an_error():
    """A subclass without a code of its own has its parent's, and does not take the parent's place in the table."""

    class Overloaded(ProviderError):
        """A host's own."""

    assert Overloaded("x") == ProviderError("x")
    assert AgentError.by_code[ErrorCode.PROVIDER_ERROR] is ProviderError

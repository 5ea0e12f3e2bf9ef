"""One tree of errors: the docstring is the message, the facts are attributes."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys

import pytest

from aaiclick import errors
from aaiclick.errors import AaiclickError, CircularDependencyError, ConfigError, InputError, NotFound

TREE = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, AaiclickError)]
EXIT_CODES = {
    "ExpectationFailed": 1,
    "BackendUnreachable": 6,
    "CoordinatorUnreachable": 6,
    "CoordinatorAway": 6,
    "ReadOnlyReplica": 4,
    "NotYetHere": 6,
    "ReplicaNotReady": 6,
    "ServerUnreachable": 6,
    "ServerBusy": 6,
    "ServerFault": 6,
    "LogsUnreachable": 6,
    "DataUnreachable": 6,
    "EngineUnavailable": 6,
    "ObjectNotFound": 3,
    "DatabaseFileError": 6,
    "WorkerStuck": 6,
    "TransientStoreError": 6,
    "NotFound": 3,
    "NotAuthenticated": 4,
    "NotAllowed": 4,
    "Conflict": 5,
    "IdempotencyConflict": 5,
    "JobEnded": 5,
    "AlreadyStarted": 5,
    "GroupComplete": 5,
    "InputsGone": 5,
    "NotYetThere": 5,
    "SessionOver": 5,
    "ClaimLost": 5,
    "WaitTimeout": 124,
}


def facts_of(kind: type[AaiclickError]) -> dict[str, str]:
    return {name: f"<{name}>" for name in re.findall(r"{(\w+)", kind.__doc__ or "")}


@pytest.mark.parametrize("kind", TREE)
def test_the_docstring_is_the_message_and_the_facts_are_attributes(kind: type[AaiclickError]) -> None:
    facts = facts_of(kind)
    error = kind(**facts)
    assert kind.__doc__
    assert "?" not in str(error)
    assert "\n" not in str(error)
    for name, value in facts.items():
        assert value in str(error)
        assert getattr(error, name) == value
    assert error.facts == facts


@pytest.mark.parametrize("kind", TREE)
def test_an_error_survives_the_way_to_another_process(kind: type[AaiclickError]) -> None:
    error = kind(**facts_of(kind))
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):  # noqa: S301 (its own)
        assert type(again) is kind
        assert str(again) == str(error)
        assert again.facts == error.facts
        assert again.__dict__ == error.__dict__


@pytest.mark.parametrize("kind", TREE)
def test_an_error_is_told_again_whatever_its_constructor_takes(kind: type[AaiclickError]) -> None:
    error = kind.retold("As it was said.", status=418)
    for again in (error, pickle.loads(pickle.dumps(error))):  # noqa: S301 (its own)
        assert type(again) is kind
        assert (str(again), again.status) == ("As it was said.", 418)


@pytest.mark.parametrize("kind", TREE)
def test_each_error_has_its_exit_code(kind: type[AaiclickError]) -> None:
    assert kind.exit_code == EXIT_CODES.get(kind.__name__, 2)


def test_there_is_one_tree() -> None:
    raised_here = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, BaseException)]
    assert raised_here == TREE


@pytest.mark.parametrize(
    ("name", "builtin"),
    [
        ("ValueNotPortable", TypeError),
        ("ValueTooLarge", ValueError),
        ("InputError", ValueError),
        ("DataRefused", ValueError),
        ("Conflict", ValueError),
        ("NotFound", LookupError),
        ("SignatureMismatch", TypeError),
        ("WaitTimeout", TimeoutError),
        ("RunningLoop", RuntimeError),
        ("NoContext", RuntimeError),
        ("SubmitDuringImport", RuntimeError),
    ],
)
def test_who_expects_the_builtin_error_catches_ours(name: str, builtin: type[Exception]) -> None:
    assert issubclass(getattr(errors, name), builtin)


def test_a_task_that_timed_out_is_a_timeout_error() -> None:
    assert issubclass(errors.TaskTimeout, TimeoutError)


def test_a_fact_that_was_not_given_is_a_question_mark() -> None:
    assert str(NotFound(what="job")) == "No job with ? ?. ?"


def test_braces_in_a_fact_are_not_filled_in() -> None:
    error = InputError(field="name", value="{field} {} {0} {x!r}", rule="no", hint="")
    assert "name: {field} {} {0} {x!r} is not accepted" in str(error)


def test_a_fact_may_be_anything() -> None:
    error = CircularDependencyError(path=["a", "b"])
    assert error.path == ["a", "b"]
    assert str(error) == "These wait for each other: ['a', 'b']. Remove one of the dependencies."


def test_a_message_of_several_lines_becomes_one() -> None:
    class Long(AaiclickError):
        """One line
        and {what}."""

    assert str(Long(what="another")) == "One line and another."


def test_errors_are_caught_by_their_branch() -> None:
    for kind in (errors.CircularDependencyError, errors.CrossJobDependency, errors.UnknownNode):
        assert issubclass(kind, errors.GraphError)
    for refused in (errors.JobEnded, errors.AlreadyStarted, errors.GroupComplete):
        assert issubclass(refused, errors.Conflict)
    assert issubclass(errors.SignatureMismatch, errors.EntrypointError)
    assert issubclass(errors.ConfigErrors, ConfigError)


def test_a_message_ends_where_its_words_end() -> None:
    assert str(NotFound(what="task", field="id", value=5, hint="")) == "No task with id 5."


def test_messages_are_there_when_python_drops_docstrings() -> None:
    code = "from aaiclick.errors import NotFound; print(NotFound(what='job', field='id', value=5, hint=''))"
    said = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True, check=True).stdout
    assert "5" in said
    assert "job" in said

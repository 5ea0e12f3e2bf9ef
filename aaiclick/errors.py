"""All exceptions of aaiclick, under `AaiclickError`.

The docstring of a class is the template of its message. The keyword arguments fill it and become attributes.
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from typing import Self

Kind = TypeVar("Kind", bound="AaiclickError")


class AaiclickError(Exception):
    """Something went wrong in aaiclick."""

    exit_code: ClassVar[int] = 2
    """The exit status of the command line; see the table in docs/reference/errors.md."""

    def __init__(self, **facts: Any) -> None:
        self.facts = facts
        for name, value in facts.items():
            setattr(self, name, value)
        super().__init__(self._message())

    @classmethod
    def retold(cls, message: str, **facts: Any) -> Self:
        """Return an error of this kind with the message that another process made for it."""
        return _rebuild(cls, facts | {"retold": message})

    def _message(self) -> str:
        if "retold" in self.facts:
            return str(self.facts["retold"])
        kind = type(self)
        words = kind.__doc__ or " ".join([f"{kind.__name__}:", *(f"{name}={{{name}}}" for name in self.facts)])  # -OO
        return _Facts().vformat(" ".join(words.split()), (), self.facts).strip()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return a fact by its name; the placeholders in the class's docstring are the names."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.facts))


def _rebuild(kind: type[Kind], facts: dict[str, Any]) -> Kind:
    """Return an error with these facts, also of a kind whose constructor takes other arguments."""
    error = kind.__new__(kind)
    AaiclickError.__init__(error, **facts)
    return error


class _Facts(string.Formatter):
    """Fills a message; a missing fact shows as a question mark instead of raising a second error."""

    def get_value(self, key: int | str, args: Any, kwargs: Any) -> Any:
        return kwargs.get(str(key), "?")


# ---------------------------------------------------------------- set-up


class ConfigError(AaiclickError):
    """{setting}={value} cannot be used: {rule}. {hint}"""


class ConfigErrors(ConfigError):
    """{count} settings cannot be used:{each}"""


class BackendUnreachable(AaiclickError):
    """Cannot reach the database at {url}: {cause}. Check that it runs and that the address and password are right."""

    exit_code = 6


class CoordinatorUnreachable(BackendUnreachable):
    """Cannot reach the coordinator at {url}: {cause}. Check that its server runs, and the address and the token."""


class CoordinatorAway(CoordinatorUnreachable):
    """{what} is known to the coordinator at {coordinator}, which cannot be reached: {cause}.

    The copy here is {age_s} s old.
    """


class LogsUnreachable(BackendUnreachable):
    """Cannot reach the logs in {place}: {cause}. Check that the store answers, and AAICLICK_LOG_STORE."""


class ProtocolRefused(AaiclickError):
    """The coordinator at {url} does not speak version {version} of the protocol for workers. {told}"""


class NoDatabase(AaiclickError):
    """{call} needs the database of the state, and this process has none: AAICLICK_COORDINATOR_URL is set. {hint}"""


class ServerUnreachable(BackendUnreachable):
    """Cannot reach the server at {url}: {cause}. Check that it runs and that the address is right."""


class ServerBusy(AaiclickError):
    """The server at {url} is busy: {cause} Try again later."""

    exit_code = 6


class ReadOnlyReplica(AaiclickError):
    """This server is a replica, which only reads: send {method} {path} to the coordinator at {coordinator}."""

    exit_code = 4


class NotYetHere(AaiclickError):
    """Event {min_seq} is not here: the newest one is {as_of_seq}, as of {lag_ms} ms ago. {hint}"""

    exit_code = 6


class ReplicaNotReady(AaiclickError):
    """This replica has not copied the coordinator at {coordinator} yet: {cause}. Try again later."""

    exit_code = 6


class ServerFault(AaiclickError):
    """The server at {url} did not answer as it should: {cause}. {hint}"""

    exit_code = 6


class NotFromAfar(AaiclickError):
    """{what} does not work through a server: {cause}. {hint}"""


class WorkerStuck(AaiclickError):
    """Worker {worker_id} could not report the results of its tasks for {seconds} s, although its heartbeats arrived.

    It ends, and other workers run these tasks again. Its log says why it could not report.
    """

    exit_code = 6


class DatabaseFileError(AaiclickError):
    """The SQLite file {path} cannot be used: {cause}. {hint}"""

    exit_code = 6


class SchemaError(AaiclickError):
    """The schema of {url} is {found}, this version of aaiclick needs {needed}. {hint}"""


class MissingExtra(AaiclickError):
    """{what} needs {package}, which is not installed. Run: pip install 'aaiclick[{extra}]'"""


class IdsExhausted(AaiclickError):
    """{cause}. {hint}"""


# ---------------------------------------------------------------- what people ask for


class InputError(AaiclickError, ValueError):
    """{field}: {value} is not accepted: {rule}. {hint}"""


class NotFound(AaiclickError, LookupError):
    """No {what} with {field} {value}. {hint}"""

    exit_code = 3


class Conflict(AaiclickError, ValueError):
    """{what} cannot be {verb}: {cause}. {hint}"""

    exit_code = 5


class IdempotencyConflict(Conflict):
    """{what} cannot be submitted with key {key!r}: {cause}. {hint}"""


class NotAuthenticated(AaiclickError):
    """This needs a valid token: {cause}. {hint}"""

    exit_code = 4


class NotAllowed(AaiclickError):
    """{what} is not allowed: {cause}. {hint}"""

    exit_code = 4


class ValueNotPortable(AaiclickError, TypeError):
    """{path}: {value} cannot be passed between tasks: {rule}. {hint}"""


class ValueTooLarge(AaiclickError, ValueError):
    """{path} takes {size} bytes, more than the limit of {limit}. Pass an Object instead, or raise {setting}."""


class WaitTimeout(AaiclickError, TimeoutError):
    """Job {job_id} is {status} after {timeout_s} s of waiting; it goes on."""

    exit_code = 124


# ---------------------------------------------------------------- graphs


class GraphError(AaiclickError):
    """{cause}. {hint}"""


class CircularDependencyError(GraphError):
    """These wait for each other: {path}. Remove one of the dependencies."""


class CrossJobDependency(GraphError):
    """{what} belongs to job {other_job_id}, not to job {job_id}: a dependency stays within one job."""


class UnknownNode(GraphError):
    """{where} names {kind} {node_id}, which does not exist. Apply it first, or together with this."""


class JobEnded(Conflict):
    """Job {job_id} is {status}: nothing can be added to it. Create a new job."""


class AlreadyStarted(Conflict):
    """{what} cannot wait for {previous}: it is {status} already. Add the dependency before it starts."""


class GroupComplete(Conflict):
    """{what} cannot join group {group}: the group is complete and {waiting} wait for it. Use a group of its own."""


class InputsGone(Conflict):
    """This cannot be {verb}: tables that it needs are gone ({each}). {hint}"""


# ---------------------------------------------------------------- entrypoints and runs


class TooManyTasks(AaiclickError):
    """{what} more tasks and groups than the limit of {limit}. Make fewer with more work each, or raise {setting}."""


class NotYetThere(Conflict):
    """Task {task_id} was made by the task that asks for it, and begins when that task has completed. Pass it to another
    task."""


class EntrypointError(AaiclickError):
    """{entrypoint} cannot be run: {cause}. {hint}"""


class SignatureMismatch(EntrypointError, TypeError):
    """{entrypoint} does not take these arguments: {cause}. Its signature is {signature}."""


class ClaimLost(AaiclickError):
    """This worker no longer holds task {task_id} (epoch {epoch}): its {move} was refused."""

    exit_code = 5


class SessionOver(Conflict):
    """The session of worker {worker_id} is over ({cause}): it gets no tasks. Register again for a new session."""

    swept: bool
    """Whether the session was ended, not only expired: a heartbeat can no longer renew it."""


class TaskTimeout(AaiclickError, TimeoutError):
    """The task ran longer than its limit of {timeout_s} s."""


class TaskCrashed(AaiclickError):
    """The process that ran the task died: {cause}. {hint}"""


class TaskSkipped(AaiclickError):
    """{reason}"""

    def __init__(self, reason: str = "The task was skipped.", **facts: object) -> None:
        super().__init__(reason=reason, **facts)


class CommandFailed(AaiclickError):
    """The command {command} {cause}. {hint}"""


class CommandFailedForGood(CommandFailed):
    """The command {command} {cause}. {hint}"""


class RequestFailed(AaiclickError):
    """{method} {url} failed: {cause}. {hint}"""


class RequestFailedForGood(RequestFailed):
    """{method} {url} failed: {cause}. {hint}"""


class UpstreamFailed(AaiclickError):
    """{task} never ran: {cause}"""


class VariableUnusable(AaiclickError):
    """{variable}, which a Secret names, cannot be used: {cause}. {hint}"""


class ValueExposed(AaiclickError):
    """{what} contains the value of a Secret or the password of a database, which would be stored. {hint}"""


class RunningLoop(AaiclickError, RuntimeError):
    """{call} cannot block inside a running event loop. Write instead: {instead}"""


class NoContext(AaiclickError, RuntimeError):
    """{call} needs a context. {hint}"""


class SubmitDuringImport(AaiclickError, RuntimeError):
    """{call} was called while a worker imported {module}. Put it under: if __name__ == "__main__":"""


class TransientStoreError(AaiclickError):
    """The database refused a transaction {attempts} times in a row ({cause}). Try again."""

    exit_code = 6


# ---------------------------------------------------------------- data


class DataRefused(AaiclickError, ValueError):
    """ClickHouse refused this (code {code}): {cause}."""


class DataUnreachable(BackendUnreachable):
    """Cannot reach ClickHouse: {cause}. Check that it runs and that AAICLICK_CH_URL is right."""


class EngineUnavailable(AaiclickError):
    """The data in {directory} cannot be opened: {cause}. {hint}"""

    exit_code = 6


class ExpectationFailed(AaiclickError):
    """The data is not as expected: {broken}."""

    exit_code = 1

    def __reduce__(self) -> tuple[Any, ...]:
        kept = {name: value for name, value in self.facts.items() if name != "found"}  # it stays with its context
        return (_rebuild, (type(self), kept))


class NotAligned(AaiclickError, ValueError):
    """The rows of {what} do not belong to the rows of the other operand. Join them on a column, or make both Objects
    with order=True, or sort both with order_by: then the first row goes with the first."""


class StaleObject(AaiclickError, RuntimeError):
    """{what} belongs to a data_context that has ended. Use it inside, or give it a name so that it stays."""


class ObjectNotFound(AaiclickError, LookupError):
    """There is no Object called {name}. {hint}"""

    exit_code = 3

"""What replicas ask of a server, over the road of workers; the answers are those of `store/replicas/source`.

Tables and columns are those of this release: a replica of another one is refused by the version of the protocol.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from aaiclick.errors import Conflict, InputError
from aaiclick.orchestration.coordinator.http.protocol import Ask
from aaiclick.orchestration.rules.validation import shorten
from aaiclick.orchestration.store.replicas.replicated import PAGE_ROWS_MAX, Choice, complaint_about
from aaiclick.orchestration.store.schema import HEAD


class OfReplica(Ask, kw_only=True):
    """A question of a replica, whose rows have the columns of this version of the schema."""

    schema: str = HEAD

    def check(self) -> None:
        """Raise Conflict if the schema is another one here."""
        if self.schema != HEAD:
            cause = f"its tables are those of version {shorten(self.schema)}, and those here of {HEAD}"
            raise Conflict(what="A replica", verb="fed", cause=cause, hint="Install the same aaiclick on both.")


class AskPage(OfReplica, kw_only=True):
    """Ask for rows of a table, unless they have this digest; see `Choice`."""

    table: str
    limit: Annotated[int, Meta(ge=1, le=PAGE_ROWS_MAX)]
    after: list[int | str] | None = None
    upto: int | None = None
    job_id: int | None = None
    since: str | None = None
    digest: str = ""

    @classmethod
    def of(cls, choice: Choice, limit: int, digest: str = "") -> AskPage:
        """Return the question for the rows of a choice."""
        after = None if choice.after is None else list(choice.after)
        fields = {"upto": choice.upto, "job_id": choice.job_id, "since": choice.since, "digest": digest}
        return cls(table=choice.table, limit=limit, after=after, **fields)  # type: ignore[arg-type]

    def choice(self) -> Choice:
        """Return which rows are meant; raise InputError for what cannot be asked for."""
        self.check()
        choice = Choice(self.table, self.after, self.upto, self.job_id, self.since)
        if wrong := complaint_about(choice):
            raise InputError(field="table", value=shorten(self.table), rule=wrong, hint="")
        return choice


class AskChanges(OfReplica, kw_only=True):
    """Ask for what has changed after an event; `mark` is the time of that event."""

    after: Annotated[int, Meta(ge=0)]
    mark: str
    limit: Annotated[int, Meta(ge=1, le=PAGE_ROWS_MAX)]


class AskWorkers(OfReplica, kw_only=True):
    """Ask for the live workers, and for those that were known as such."""

    known: list[int]

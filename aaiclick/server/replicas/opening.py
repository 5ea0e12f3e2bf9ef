"""Opening a replica: its file, the calls to its coordinator, and whoever feeds it and asks about its callers."""

from __future__ import annotations

import fcntl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from aaiclick.config import settings
from aaiclick.errors import BackendUnreachable, ConfigError, Conflict
from aaiclick.orchestration.connections import connected_to
from aaiclick.orchestration.coordinator.http.calls import Calls
from aaiclick.orchestration.coordinator.http.opening import secured_for
from aaiclick.orchestration.coordinator.http.replica_protocol import OfReplica
from aaiclick.orchestration.store.replicas import applying
from aaiclick.orchestration.store.replicas.source import Start
from aaiclick.server.replicas.callers import AskedCallers, asking_as
from aaiclick.server.replicas.feeder import Feeder
from aaiclick.server.replicas.files import open_replica
from aaiclick.server.replicas.passing import Passing
from aaiclick.server.replicas.progress import Progress
from aaiclick.server_address import Address


@dataclass(frozen=True)
class Replicated:
    """What a replica copies, and where to: the addresses of its coordinator, a token for it, and a file."""

    addresses: tuple[Address, ...]
    token: str
    file: Path

    @property
    def url(self) -> str:
        """The address that callers are told."""
        return self.addresses[0].url


@dataclass(frozen=True)
class Replica:
    """The parts of an open replica."""

    feeder: Feeder
    progress: Progress
    callers: AskedCallers
    passing: Passing


def replicated_of(url: str, file: Path | None = None, token: str | None = None) -> Replicated:
    """Return what to copy from the server at `url`; several addresses with commas, all of one database.

    Without a file it is replica.db in AAICLICK_LOCAL_ROOT, without a token that in AAICLICK_API_TOKEN.
    """
    addresses = tuple(Address.of(each.strip(), "--replica-of") for each in url.split(",") if each.strip())
    if not addresses:
        hint = "Such as https://coordinator.example.com:8765"
        raise ConfigError(setting="--replica-of", value=repr(url[:200]), rule="no address", hint=hint)
    token = token or settings().api_token
    if not token:
        hint = "Make one at the coordinator with: aaiclick token create NAME --role replica"
        raise ConfigError(setting="AAICLICK_API_TOKEN", value="nothing", rule="a replica needs a token", hint=hint)
    return Replicated(addresses, token, (file or settings().local_root / "replica.db").absolute())


async def check_replicated(replicated: Replicated) -> None:
    """Raise what a coordinator that can be reached refuses, such as the token; one that is away may come later."""
    calls = _calls(replicated)
    try:
        await calls.ask("replica_start", OfReplica(), Start)
    except BackendUnreachable:
        pass
    finally:
        calls.close()


@asynccontextmanager
async def replica_opened(replicated: Replicated) -> AsyncIterator[Replica]:
    """Open a replica; all questions inside this block are answered from its file. It is not fed yet."""
    with _alone(replicated.file):
        progress = Progress(replicated.url)
        database = await open_replica(replicated.file, progress.as_of)
        async with connected_to(database):
            progress.state = await database.read(applying.read_state)
            secured = secured_for(replicated.addresses, settings())
            feeding, asking = _calls(replicated), Calls(replicated.addresses, asking_as.get, secured=secured)
            callers = AskedCallers(database, asking, progress)
            await callers.load()
            passing = Passing(list(replicated.addresses), secured, progress)
            try:
                yield Replica(Feeder(database, feeding, progress), progress, callers, passing)
            finally:
                feeding.close()
                asking.close()


def _calls(replicated: Replicated) -> Calls:
    secured = secured_for(replicated.addresses, settings())
    return Calls(replicated.addresses, lambda: replicated.token, secured=secured)


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Keep the file from other replicas; raise Conflict if one has it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.with_name(f"{file.name}.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            hint = "Name another file with --replica-file."
            raise Conflict(what=str(file), verb="opened", cause="another replica has it", hint=hint) from None
        yield

"""Workers, the health of the whole, and who changed what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aaiclick.client.calls import part
from aaiclick.client.verbs.asking import Asking, Id
from aaiclick.errors import ServerBusy

if TYPE_CHECKING:
    from aaiclick.orchestration.queries.short_ids import Kind
    from aaiclick.representations.access.audit import AuditPage
    from aaiclick.representations.health import HealthAnswer
    from aaiclick.representations.ids import FoundId
    from aaiclick.representations.workers import Asked, WorkerAnswer, WorkerPage


class FleetVerbs(Asking):
    """Methods about workers and the server."""

    async def list_workers(
        self, *, status: str | None = None, before: Id | None = None, limit: int | None = None
    ) -> WorkerPage:
        """Return a page of workers, newest first, including those that have ended."""
        found: WorkerPage = await self._get("/workers", status=status, before=before, limit=limit)
        return found

    async def get_worker(self, worker_id: Id) -> WorkerAnswer:
        """Return a worker; raise NotFound."""
        found: WorkerAnswer = await self._get(f"/workers/{part(worker_id)}")
        return found

    async def drain_worker(self, worker_id: Id) -> Asked:
        """Ask a worker to finish its running tasks and end."""
        found: Asked = await self._post(f"/workers/{part(worker_id)}/drain")
        return found

    async def stop_worker(self, worker_id: Id) -> Asked:
        """End a worker's session now: its tasks go to other workers."""
        found: Asked = await self._post(f"/workers/{part(worker_id)}/stop")
        return found

    async def health(self) -> HealthAnswer:
        """Return all checks of the server and their outcomes."""
        found: HealthAnswer = await self._get("/health")
        return found

    async def is_ready(self) -> bool:
        """Return whether the server can work: its database answers and has the needed schema."""
        try:
            return (await self._calls.ask("GET", "/readyz", repeatable=False)).status == 200
        except ServerBusy:
            return False

    async def is_alive(self) -> bool:
        """Return whether the server answers; raise ServerUnreachable if not."""
        return (await self._calls.ask("GET", "/healthz")).status == 200

    async def metrics(self) -> str:
        """Return all metrics, in the text format of Prometheus."""
        return (await self._calls.ask("GET", "/metrics")).body.decode()

    async def list_audit(self, *, before: Id | None = None, limit: int | None = None) -> AuditPage:
        """Return a page of the changes made from outside, newest first."""
        found: AuditPage = await self._get("/audit", before=before, limit=limit)
        return found

    async def find_id(self, kind: Kind, ending: str) -> int:
        """Return the only id of a kind that ends with these digits, or is the same; raise NotFound or InputError."""
        found: FoundId = await self._get(f"/ids/{part(kind)}/{part(ending)}")
        return int(found["id"])

    async def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document of the server."""
        found: dict[str, Any] = await self._get("/openapi.json")
        return found

"""The client that blocks. Its methods are those of `AsyncAPIClient`, run on blocking sockets without an event loop."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from functools import wraps
from ssl import SSLContext
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from aaiclick.client.async_api_client import AsyncAPIClient as Verbs
from aaiclick.client.networks import BlockingNetwork, finished, iterated

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(
    verb: Callable[Concatenate[Verbs, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[APIClient, P], T]:
    @wraps(verb)
    def ask(client: APIClient, /, *given: P.args, **named: P.kwargs) -> T:
        return finished(verb(client._verbs, *given, **named))

    return ask


def _iterating(
    verb: Callable[Concatenate[Verbs, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate[APIClient, P], Iterator[T]]:
    @wraps(verb)
    def ask(client: APIClient, /, *given: P.args, **named: P.kwargs) -> Iterator[T]:
        return iterated(verb(client._verbs, *given, **named))

    return ask


class APIClient:
    """Asks a server; all methods block. It may be used by several threads."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        verify: bool | str | SSLContext = True,
        timeout_s: float = 30.0,
        retries: int = 3,
    ) -> None:
        """See `AsyncAPIClient`."""
        self._verbs = Verbs(url, token, verify=verify, timeout_s=timeout_s, retries=retries, network=BlockingNetwork())

    @property
    def url(self) -> str:
        """The address of the server."""
        return self._verbs.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        finished(self._verbs.aclose())

    # jobs
    submit_job = _blocking(Verbs.submit_job)
    run_registered_job = _blocking(Verbs.run_registered_job)
    get_job = _blocking(Verbs.get_job)
    list_jobs = _blocking(Verbs.list_jobs)
    iter_jobs = _iterating(Verbs.iter_jobs)
    get_job_errors = _blocking(Verbs.get_job_errors)
    get_job_result = _blocking(Verbs.get_job_result)
    show_job_result = _blocking(Verbs.show_job_result)
    cancel_job = _blocking(Verbs.cancel_job)
    retry_job = _blocking(Verbs.retry_job)
    get_job_stats = _blocking(Verbs.get_job_stats)
    get_job_graph = _blocking(Verbs.get_job_graph)
    list_job_tasks = _blocking(Verbs.list_job_tasks)
    iter_job_tasks = _iterating(Verbs.iter_job_tasks)
    wait_for_job = _blocking(Verbs.wait_for_job)
    list_events = _blocking(Verbs.list_events)
    follow_events = _iterating(Verbs.follow_events)

    # tasks
    list_tasks = _blocking(Verbs.list_tasks)
    get_task = _blocking(Verbs.get_task)
    list_task_runs = _blocking(Verbs.list_task_runs)
    why_pending = _blocking(Verbs.why_pending)
    clear_task = _blocking(Verbs.clear_task)
    read_log = _blocking(Verbs.read_log)
    read_whole_log = _blocking(Verbs.read_whole_log)
    iter_log = _iterating(Verbs.iter_log)
    follow_log = _iterating(Verbs.follow_log)
    list_dead_letters = _blocking(Verbs.list_dead_letters)
    replay_dead_letter = _blocking(Verbs.replay_dead_letter)

    # remembered results
    list_cache = _blocking(Verbs.list_cache)
    clear_cache = _blocking(Verbs.clear_cache)

    # registered jobs
    list_registered_jobs = _blocking(Verbs.list_registered_jobs)
    get_registered_job = _blocking(Verbs.get_registered_job)
    register_job = _blocking(Verbs.register_job)
    enable_job = _blocking(Verbs.enable_job)
    disable_job = _blocking(Verbs.disable_job)
    list_fires = _blocking(Verbs.list_fires)
    list_backfills = _blocking(Verbs.list_backfills)
    plan_backfill = _blocking(Verbs.plan_backfill)
    create_backfill = _blocking(Verbs.create_backfill)
    get_backfill = _blocking(Verbs.get_backfill)
    cancel_backfill = _blocking(Verbs.cancel_backfill)

    # nodes
    list_nodes = _blocking(Verbs.list_nodes)
    get_node = _blocking(Verbs.get_node)
    cordon_node = _blocking(Verbs.cordon_node)
    uncordon_node = _blocking(Verbs.uncordon_node)
    drain_node = _blocking(Verbs.drain_node)
    remove_node = _blocking(Verbs.remove_node)

    # resources
    list_resources = _blocking(Verbs.list_resources)
    set_resource = _blocking(Verbs.set_resource)
    remove_resource = _blocking(Verbs.remove_resource)

    # workers and the server
    list_workers = _blocking(Verbs.list_workers)
    get_worker = _blocking(Verbs.get_worker)
    drain_worker = _blocking(Verbs.drain_worker)
    stop_worker = _blocking(Verbs.stop_worker)
    health = _blocking(Verbs.health)
    is_ready = _blocking(Verbs.is_ready)
    is_alive = _blocking(Verbs.is_alive)
    metrics = _blocking(Verbs.metrics)
    list_audit = _blocking(Verbs.list_audit)
    find_id = _blocking(Verbs.find_id)
    openapi = _blocking(Verbs.openapi)

    # Objects
    list_objects = _blocking(Verbs.list_objects)
    describe_object = _blocking(Verbs.describe_object)
    read_rows = _blocking(Verbs.read_rows)
    query_object = _blocking(Verbs.query_object)
    arrow = _blocking(Verbs.arrow)
    df = _blocking(Verbs.df)
    iter_arrow = _iterating(Verbs.iter_arrow)
    result_arrow = _blocking(Verbs.result_arrow)
    result_df = _blocking(Verbs.result_df)

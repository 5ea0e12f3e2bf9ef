"""Everything that is shown, and how it is asked for at each door: REST, MCP and the command line.

Commands may show more, which is listed here field by field. Whatever is new at one door has to be put into `THINGS`, or
where it is said why it is nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

API = "/api/v1"
SPAN = {"start": "2026-03-01", "end": "2026-03-04"}
DAYS = ("--start", SPAN["start"], "--end", SPAN["end"])
DETAIL = {"errors", "expectations"}
HERE = {"arguments", "log_path"}


@dataclass(frozen=True)
class Thing:
    """How one thing is asked for at each door, and what commands show besides."""

    rest: tuple[str, ...]
    tools: tuple[tuple[str, dict[str, Any]], ...]
    command: str
    more: set[str] = field(default_factory=set)
    apart: frozenset[str] = frozenset()
    """Fields that tools tell in their own way."""
    body: dict[str, Any] | None = None
    read: Callable[[Any], Any] = lambda answer: answer
    """What of a command's answer is compared."""


def thing(
    rest: str, tool: str, command: str, more: set[str] | None = None, given: dict[str, Any] | None = None, **how: Any
) -> Thing:
    """One that takes a question at each door; the tool's arguments are words like `job_id={broken}`."""
    name, *arguments = tool.split(" ")
    found = dict(each.split("=", 1) for each in arguments) | (given or {})
    return Thing((rest,), ((name, found),), command, more or set(), **how)


def result_of(answer: dict[str, Any]) -> dict[str, Any]:
    named = {"result": "result", "complete": "result_complete", "size": "result_size"}
    return {"job_id": answer["id"]} | {name: answer[there] for name, there in named.items()}


def rows_of(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: answer[name] for name in ("columns", "rows", "complete")}


def schema_of(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: answer[name] for name in ("name", "shape", "ordered", "columns")}


THINGS = {
    "jobs": thing("/jobs", "find_jobs", "job list", {"total"}),
    "job": thing("/jobs/{broken}", "get_job job_id={broken}", "job get {broken}", DETAIL),
    "job that waits": thing("/jobs/{waiting}", "get_job job_id={waiting}", "job get {waiting}", DETAIL),
    "errors of a job": Thing(
        ("/jobs/{broken}", "/jobs/{broken}/errors"),
        (("get_job", {"job_id": "{broken}"}), ("get_job_errors", {"job_id": "{broken}"})),
        "job get {broken}",
    ),
    "expectations": Thing(
        ("/jobs/{warned}", "/jobs/{warned}/errors"),
        (("get_job", {"job_id": "{warned}"}), ("get_job_errors", {"job_id": "{warned}"})),
        "job get {warned}",
    ),
    "result": thing(
        "/jobs/{whole}/result", "get_job_result job_id={whole}", "job get {whole} --result", read=result_of
    ),
    "stats": thing("/jobs/{broken}/stats", "get_job_stats job_id={broken}", "job stats {broken}"),
    "graph": thing("/jobs/{waiting}/graph", "get_job_graph job_id={waiting}", "job graph {waiting}"),
    "tasks of a job": thing("/jobs/{waiting}/tasks", "list_job_tasks job_id={waiting}", "job tasks {waiting}"),
    "events": thing(
        "/events?job_id={broken}", "list_job_events job_id={broken}", "job events {broken}", apart=frozenset({"next"})
    ),
    "job that was cancelled": thing(
        "POST /jobs/{cancelled}/cancel", "cancel_job job_id={cancelled}", "job cancel {cancelled}", {"job"}
    ),
    "retry of a job": thing(
        "POST /jobs/{broken}/retry",
        "retry_job job_id={broken}",
        "job retry {broken} --dry-run",
        {"cleared"},
        given={"dry_run": True},
        body={"dry_run": True},
    ),
    "tasks of all jobs": thing("/tasks?status=failed", "list_tasks status=failed", "task list --status failed"),
    "tasks that no node may run": thing(
        "/tasks?blocked=placement", "list_tasks blocked=placement", "task list --blocked placement"
    ),
    "task": thing("/tasks/{failed}", "get_task task_id={failed}", "task get {failed}", {"log_path"}),
    "runs of a task": thing("/tasks/{failed}/runs", "list_task_runs task_id={failed}", "task runs {failed}"),
    "why a task waits": thing("/tasks/{blocked}/pending", "why_pending task_id={blocked}", "task why {blocked}"),
    "clearing a task": thing(
        "POST /tasks/{failed}/clear",
        "clear_task task_id={failed}",
        "task clear {failed} --dry-run",
        {"cleared"},
        given={"dry_run": True},
        body={"dry_run": True},
    ),
    "log": thing("/tasks/{failed}/logs", "read_task_log task_id={failed}", "task logs {failed}", {"task_id", "epoch"}),
    "dead letters": thing("/dead-letters", "list_dead_letters", "dlq list", {f"tasks.{each}" for each in HERE}),
    "dead letters of a job": thing(
        "/dead-letters",
        "list_failed_tasks job_id={broken}",
        "dlq list --job {broken}",
        {f"tasks.{each}" for each in HERE},
    ),
    "registered jobs": thing(
        "/registered-jobs", "list_registered_jobs", "registered-job list", {"registered_jobs.default_kwargs"}
    ),
    "registered job": thing(
        "/registered-jobs/nightly",
        "get_registered_job name=nightly",
        "registered-job get nightly",
        {"default_kwargs", "next_runs"},
    ),
    "run of a registered job": thing(
        "POST /registered-jobs/nightly/run",
        "run_registered_job name=nightly key=monday",
        "run-job nightly --key monday",
        body={"key": "monday"},
    ),
    "remembered results": thing("/cache", "list_cache", "cache list"),
    "clearing the cache": thing(
        "POST /cache/clear",
        "clear_cache entrypoint=shop.prices",
        "cache clear shop.prices",
        body={"entrypoint": "shop.prices"},
    ),
    "fires": thing("/registered-jobs/nightly/fires", "list_fires name=nightly", "registered-job fires nightly"),
    "backfills": thing(
        "/registered-jobs/nightly/backfills", "list_backfills name=nightly", "registered-job backfills nightly"
    ),
    "backfill": thing(
        "/backfills/{backfill}", "get_backfill backfill_id={backfill}", "registered-job get-backfill {backfill}"
    ),
    "plan of a backfill": thing(
        "POST /registered-jobs/nightly/backfills",
        "plan_backfill name=nightly",
        f"registered-job backfill nightly --dry-run {' '.join(DAYS)}",
        given=SPAN,
        body=SPAN | {"dry_run": True},
    ),
    "workers": thing("/workers", "list_workers", "worker list"),
    "worker": Thing(("/workers/{worker}",), (), "worker get {worker}"),
    "draining a worker": thing(
        "POST /workers/{worker}/drain", "drain_worker worker_id={worker}", "worker drain {worker}", {"id"}
    ),
    "nodes": thing("/nodes", "list_nodes", "node list"),
    "node": thing("/nodes/box", "get_node name=box", "node get box"),
    "closing a node": thing("POST /nodes/box/cordon", "cordon_node name=box", "node cordon box"),
    "opening a node": thing("POST /nodes/box/uncordon", "uncordon_node name=box", "node uncordon box"),
    "draining a node": thing("POST /nodes/box/drain", "drain_node name=box", "node drain box"),
    "resources": thing("/resources", "list_resources", "resource list"),
    "health": thing(
        "/health", "check_health", "doctor", {"aaiclick", "python", "packages", "extras", "settings", "healthy"}
    ),
    "audit log": Thing(("/audit",), (), "audit"),
    "objects": thing("/objects", "list_objects", "data list", {"stored"}),
    "columns of an Object": thing(
        "/objects/people/schema", "describe_object name=people", "data show people", read=schema_of
    ),
    "rows of an Object": thing("/objects/people/rows", "read_object name=people", "data show people", read=rows_of),
    "query": thing(
        "POST /objects/people/query", "query_object name=people", "data query SELECT+name,+at+FROM+p_people", body={}
    ),
}

ONLY_REST = {
    "/healthz": "a probe",
    "/readyz": "a probe",
    "/api/v1/openapi.json": "about REST itself",
    "/api/v1/events/stream": "the events of /events, as they happen",
    "/api/v1/ids/{kind}/{ending}": "for clients that take shortened ids; commands find them in the database",
    "/api/v1/objects/{name}/arrow": "rows for programs; tests/server/streaming/test_rows.py",
    "/api/v1/jobs/{job_id}/result/arrow": "rows for programs; tests/client/test_api_client.py",
    "/metrics": "a text, the same as that of the command without --json; tests/server/routes/test_metrics.py",
}
ONLY_TOOLS = {
    "trace_lineage": "no other door follows lineage",
    "get_metrics": "the text of /metrics, or some of its lines",
}
ONLY_COMMANDS = {
    "data delete": "nothing is deleted from outside",
    "data rollback": "nothing is deleted from outside",
    "data versions": "of whoever has the engine",
    "job logs": "the logs of its tasks, one after the other",
    "job wait": "as run-job",
    "metrics": "the numbers of the text",
    "migrate": "of whoever has the database",
    "migrate check": "of whoever has the database",
    "migrate copy": "of whoever has the databases",
    "migrate current": "of whoever has the database",
    "migrate upgrade": "of whoever has the database",
    "prune": "of whoever has the database",
    "setup": "of whoever has the database",
    "token create": "tokens are made where the server runs",
    "token list": "tokens are made where the server runs",
    "token revoke": "tokens are made where the server runs",
    "local start": "its events are those of processes",
}
CHANGES = {
    "POST /api/v1/callbacks/{token}",
    "POST /api/v1/jobs",
    "POST /api/v1/dead-letters/{task_id}/replay",
    "POST /api/v1/registered-jobs/{name}/enable",
    "POST /api/v1/registered-jobs/{name}/disable",
    "PUT /api/v1/registered-jobs/{name}",
    "POST /api/v1/backfills/{backfill_id}/cancel",
    "POST /api/v1/workers/{worker_id}/stop",
    "POST /api/v1/nodes/{name}/remove",
    "PUT /api/v1/resources/{name}",
    "POST /api/v1/resources/{name}/remove",
    *("submit_job", "replay_dead_letter", "enable_registered_job", "disable_registered_job", "register_job"),
    *("backfill_registered_job", "cancel_backfill", "stop_worker", "remove_node", "set_resource", "remove_resource"),
    *("dlq replay", "task retry", "job enable", "job disable", "register-job", "registered-job cancel-backfill"),
    "worker stop",
    "node remove",
    "resource set",
    "resource remove",
}
"""What changes something each time that it is asked for, and answers with a thing, or the form, of another above."""

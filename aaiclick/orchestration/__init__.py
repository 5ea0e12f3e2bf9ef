"""The public functions and classes for building workflows and running them: jobs, tasks, groups, dependencies.

Each name is imported from its module when it is first used, so that importing this package is cheap.
"""

from __future__ import annotations

import importlib
from typing import Any

_WHERE = {
    "decorators": ("JobFactory", "TaskFactory", "as_task", "job", "task"),
    "operators": ("create_result_collector", "filter", "foreach", "map", "reduce"),
    "factories": ("create_job", "create_task", "resolve_job_config"),
    "jobs": (
        "JobStats",
        "TaskError",
        "cancel_job",
        "compute_job_stats",
        "count_jobs",
        "get_dependencies_for_job",
        "get_events_for_job",
        "get_groups_for_job",
        "get_job",
        "get_job_result",
        "get_tasks_for_job",
        "list_job_errors",
        "list_jobs",
        "load_job_groups",
        "load_job_result",
        "load_job_tasks",
        "print_job_stats",
        "retry_failed_tasks",
        "show_job_result",
        "wait_for_job",
        "wait_for_this",
    ),
    "registered_jobs": (
        "disable_job",
        "enable_job",
        "get_registered_job",
        "list_fires",
        "list_registered_jobs",
        "next_runs",
        "register_job",
        "run_job",
        "upsert_registered_job",
    ),
    "backfills": ("PlannedTime", "backfill_job", "cancel_backfill", "get_backfill", "list_backfills", "plan_backfill"),
    "tasks": (
        "add_task_to_current_job",
        "add_task_to_job",
        "clear_task",
        "get_runs_for_task",
        "get_task",
        "get_task_result",
        "get_traceback",
        "load_child_groups",
        "load_group_tasks",
    ),
    "queries.expectations": ("Unmet", "list_job_expectations", "list_task_expectations"),
    "queries.groups": ("GroupProgress", "get_group_progress"),
    "queries.dead_letters": ("list_dead_letters", "replay_dead_letter"),
    "queries.job_graphs": ("get_job_graph", "list_job_tasks"),
    "queries.task_list": ("list_tasks",),
    "queries.short_ids": ("find_id",),
    "execution.logs.log_reading": ("read_log",),
    "queries.log_following": ("follow_job_logs", "follow_log", "read_job_logs"),
    "workers": (
        "claim_next_task",
        "count_live_workers",
        "deregister_worker",
        "drain_worker",
        "list_workers",
        "register_worker",
        "worker_heartbeat",
    ),
    "nodes": ("cordon_node", "drain_node", "get_node", "list_nodes", "remove_node", "uncordon_node"),
    "context": ("Context", "get_current_context", "get_current_job_id", "orch_context"),
    "results.task_results": ("TaskResult",),
    "rules.failed": ("Failed",),
    "rules.triggers": ("When",),
    "launchers.debug": ("ajob_test", "job_test"),
    "execution.runs.current": ("cancel_requested", "get_current_run"),
    "launchers.worker_main": ("background_main_loop", "worker_main_loop"),
    "queries.health": ("Check", "Health", "health_check"),
    "queries.metrics": ("collect_metrics", "render_metrics"),
    "rules.metrics": ("Metrics",),
    "queries.pending": ("why_pending",),
    "rules.pending": ("Blocker", "Pending", "Reason"),
    "models.node_info": ("NodeDescription", "NodeInfo"),
    "rules.placement": ("PlacementConstraints", "satisfies_placement"),
    "rules.nodes": ("NodeState", "NodeStatus"),
    "models": (
        "Backfill",
        "CacheEntry",
        "Dependency",
        "Event",
        "Fire",
        "Group",
        "Job",
        "RegisteredJob",
        "Run",
        "Task",
        "Worker",
    ),
    "rules.states": (
        "JobStatus",
        "PRESERVATION_FULL",
        "PRESERVATION_NONE",
        "PreservationMode",
        "RunType",
        "TaskStatus",
        "WorkerStatus",
    ),
    "rules.retries": ("RetryPolicy",),
    "rules.cache_policies": ("Cache", "CacheMode"),
    "queries.leases": ("load_task_lease",),
    "queries.cached_results": ("clear_cache", "list_cache"),
    "rules.values.registry": ("register_type",),
    "rules.secrets": ("Secret",),
    "rules.schedules.fires": ("BackfillStatus", "FireOutcome", "MissedRuns", "Overlap", "TimeState"),
}
_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names}
_ELSEWHERE = {
    "CircularDependencyError": "aaiclick.errors",
    "TaskSkipped": "aaiclick.errors",
    "get_logs_dir": "aaiclick.backend",
}

__all__ = sorted([*_MODULE_OF, *_ELSEWHERE])  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        module = importlib.import_module(f"{__name__}.{_MODULE_OF[name]}")
    elif name in _ELSEWHERE:
        module = importlib.import_module(_ELSEWHERE[name])
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

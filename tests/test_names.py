"""Every name that people expect is where they expect it, and importing costs next to nothing until it is used."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

PROMISED = {
    "aaiclick": [
        *("task", "job", "job_test", "create_task", "create_job", "get_job", "Task", "Group", "Context", "map"),
        *("data_context", "create_object_from_value", "open_object", "Object", "View", "data", "orchestration"),
    ],
    "aaiclick.orchestration": [
        # decorators and building
        *("task", "job", "TaskFactory", "JobFactory", "TaskResult", "create_task", "create_job", "resolve_job_config"),
        *("Task", "Group", "Context", "orch_context", "get_current_context", "get_current_job_id"),
        *("add_task_to_job", "add_task_to_current_job", "CircularDependencyError", "RetryPolicy"),
        # asking
        *("get_job", "list_jobs", "count_jobs", "get_task", "get_tasks_for_job", "cancel_job", "get_job_result"),
        *("compute_job_stats", "print_job_stats", "get_task_result", "get_logs_dir"),
        # running
        *("job_test", "ajob_test", "claim_next_task"),
        *("register_worker", "worker_heartbeat", "deregister_worker", "list_workers", "drain_worker"),
        *("worker_main_loop", "background_main_loop", "health_check", "get_current_run", "cancel_requested"),
        *("clear_task", "retry_failed_tasks", "create_result_collector", "get_group_progress"),
        *("register_job", "get_registered_job", "upsert_registered_job", "enable_job", "disable_job"),
        *("list_registered_jobs", "run_job", "backfill_job"),
        # words
        *("JobStatus", "TaskStatus", "WorkerStatus", "RunType", "PRESERVATION_NONE", "PRESERVATION_FULL"),
        *("Job", "Run", "Dependency", "Worker", "RegisteredJob", "Event", "PreservationMode"),
    ],
    "aaiclick.orchestration.models": [
        *("Job", "Task", "Run", "Group", "Dependency", "Worker", "RegisteredJob", "Event"),
        *("JobStatus", "TaskStatus", "WorkerStatus", "RunType", "PreservationMode"),
    ],
    "aaiclick.orchestration.decorators": ["TaskFactory", "JobFactory", "task", "job"],
    "aaiclick.orchestration.factories": ["create_task", "create_job", "resolve_job_config"],
    "aaiclick.orchestration.execution.debug": ["job_test", "ajob_test"],
    "aaiclick.backend": ["get_root", "get_db_url", "get_ch_url", "is_chdb", "is_sqlite", "is_local", "get_logs_dir"],
    "aaiclick.errors": ["AaiclickError", "CircularDependencyError"],
    "aaiclick.operators": ["map", "filter", "foreach", "reduce"],
    "aaiclick.orchestration.operators": [
        *("map", "filter", "foreach", "reduce", "create_result_collector"),
        *("_map_part", "_reduce_part", "_expand_reduce"),
    ],
    "aaiclick.data": ["data_context", "create_object", "create_object_from_value", "open_object"],
    "aaiclick.orchestration.examples.orchestration_basic": ["pipeline", "add", "multiply"],
}

ALIASES = {
    "Task": ["result_table_id", "error_message", "retry_count", "run_epoch", "description"],
    "Job": ["description", "tasks", "groups", "result", "test"],
    "Group": ["description", "tasks", "child_groups", "parent_group", "parent_group_id"],
}


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in PROMISED.items() for name in names])
def test_a_promised_name_can_be_imported(module: str, name: str) -> None:
    assert getattr(importlib.import_module(module), name) is not None


@pytest.mark.parametrize(("model", "name"), [(model, name) for model, names in ALIASES.items() for name in names])
def test_the_models_keep_their_older_names(model: str, name: str) -> None:
    assert hasattr(getattr(importlib.import_module("aaiclick.orchestration.models"), model), name)


@pytest.mark.parametrize(
    "statement",
    [
        "import aaiclick",
        "from aaiclick import Task, Group, JobStatus",
        "import aaiclick.orchestration",
        "from aaiclick.orchestration import Task, Group",
        "from aaiclick.orchestration import Task; Task('some.where', {'a': 1}) >> Task('else.where')",
        "from aaiclick.orchestration.models import Job, Task, Group, Worker",
        "from aaiclick.orchestration import JobStatus, RetryPolicy, CircularDependencyError",
        "from aaiclick.orchestration import task, job, map, create_job, create_task, orch_context, Context, Group",
        "from aaiclick.backend import is_local; is_local()",
        "import aaiclick.errors, aaiclick.config",
    ],
)
def test_building_a_graph_loads_no_database_library(statement: str) -> None:
    heavy = ("sqlalchemy", "alembic", "aiosqlite", "asyncpg", "asyncmy", "redis", "rich", "typer")
    code = f"import sys\n{statement}\nprint(sorted(set({heavy!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_worker_loads_no_data_library_before_a_body_needs_one() -> None:
    heavy = ("numpy", "pyarrow", "pandas", "polars", "pydantic", "chdb", "clickhouse_connect")
    code = "import sys\nimport aaiclick.orchestration.launchers.worker_main\n"
    code += f"print(sorted(set({heavy!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


WORKER_MODULES_MAX, NODE_WORKER_MODULES_MAX, CHILD_MODULES_MAX = 557, 339, 437
CONTROL_MODULES_MAX, SERVER_MODULES_MAX = 541, 1045
"""Beside those that Python begins with; see `benchmarks/startup.py` for what they cost."""

EXECUTORS = "aaiclick.orchestration.execution.executors"
WORKER_MAIN = "aaiclick.orchestration.launchers.worker_main"
DIRECT = "aaiclick.orchestration.coordinator.direct"
"""Loaded by who has the database, when it connects."""


@pytest.mark.parametrize(
    ("modules", "most"),
    [
        ((WORKER_MAIN, f"{EXECUTORS}.process", DIRECT), WORKER_MODULES_MAX),
        ((WORKER_MAIN, f"{EXECUTORS}.process"), NODE_WORKER_MODULES_MAX),
        ((WORKER_MAIN, DIRECT), CONTROL_MODULES_MAX),
        ((f"{EXECUTORS}.nursery",), CHILD_MODULES_MAX),
        (("aaiclick.server.serving",), SERVER_MODULES_MAX),
    ],
    ids=["a worker", "a worker without the database", "the control loop", "a child", "the server"],
)
def test_a_process_loads_few_modules(modules: tuple[str, ...], most: int) -> None:
    code = f"import sys\nbefore = set(sys.modules)\nimport {', '.join(modules)}\nprint(len(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) <= most


def test_what_bodies_need_is_loaded_where_they_run() -> None:
    """A worker with child processes and the control loop run none."""
    code = f"import sys, aaiclick.orchestration.launchers.worker_main, {EXECUTORS}.process\n"
    code += "print({'aaiclick.data.objects', 'aaiclick.data.context', 'aaiclick.data.operations'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_name_of_data_is_not_hidden_by_the_module_of_that_name() -> None:
    code = "import aaiclick.data.lineage, aaiclick.data\nfrom aaiclick.data import lineage\n"
    code += "print(callable(lineage), lineage is aaiclick.data.lineage is aaiclick.lineage, 'sys.modules')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[:2] == ["True", "True"]

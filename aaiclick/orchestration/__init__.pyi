# printed by `python -m aaiclick.stubs aaiclick.orchestration`; a test compares

from aaiclick.backend import get_logs_dir as get_logs_dir
from aaiclick.errors import CircularDependencyError as CircularDependencyError
from aaiclick.errors import TaskSkipped as TaskSkipped
from aaiclick.orchestration.backfills import PlannedTime as PlannedTime
from aaiclick.orchestration.backfills import backfill_job as backfill_job
from aaiclick.orchestration.backfills import cancel_backfill as cancel_backfill
from aaiclick.orchestration.backfills import get_backfill as get_backfill
from aaiclick.orchestration.backfills import list_backfills as list_backfills
from aaiclick.orchestration.backfills import plan_backfill as plan_backfill
from aaiclick.orchestration.context import Context as Context
from aaiclick.orchestration.context import get_current_context as get_current_context
from aaiclick.orchestration.context import get_current_job_id as get_current_job_id
from aaiclick.orchestration.context import orch_context as orch_context
from aaiclick.orchestration.decorators import JobFactory as JobFactory
from aaiclick.orchestration.decorators import TaskFactory as TaskFactory
from aaiclick.orchestration.decorators import as_task as as_task
from aaiclick.orchestration.decorators import job as job
from aaiclick.orchestration.decorators import task as task
from aaiclick.orchestration.execution.logs.log_reading import read_log as read_log
from aaiclick.orchestration.execution.runs.current import cancel_requested as cancel_requested
from aaiclick.orchestration.execution.runs.current import get_current_run as get_current_run
from aaiclick.orchestration.factories import create_job as create_job
from aaiclick.orchestration.factories import create_task as create_task
from aaiclick.orchestration.factories import resolve_job_config as resolve_job_config
from aaiclick.orchestration.jobs import JobStats as JobStats
from aaiclick.orchestration.jobs import TaskError as TaskError
from aaiclick.orchestration.jobs import cancel_job as cancel_job
from aaiclick.orchestration.jobs import compute_job_stats as compute_job_stats
from aaiclick.orchestration.jobs import count_jobs as count_jobs
from aaiclick.orchestration.jobs import get_dependencies_for_job as get_dependencies_for_job
from aaiclick.orchestration.jobs import get_events_for_job as get_events_for_job
from aaiclick.orchestration.jobs import get_groups_for_job as get_groups_for_job
from aaiclick.orchestration.jobs import get_job as get_job
from aaiclick.orchestration.jobs import get_job_result as get_job_result
from aaiclick.orchestration.jobs import get_tasks_for_job as get_tasks_for_job
from aaiclick.orchestration.jobs import list_job_errors as list_job_errors
from aaiclick.orchestration.jobs import list_jobs as list_jobs
from aaiclick.orchestration.jobs import load_job_groups as load_job_groups
from aaiclick.orchestration.jobs import load_job_result as load_job_result
from aaiclick.orchestration.jobs import load_job_tasks as load_job_tasks
from aaiclick.orchestration.jobs import print_job_stats as print_job_stats
from aaiclick.orchestration.jobs import retry_failed_tasks as retry_failed_tasks
from aaiclick.orchestration.jobs import show_job_result as show_job_result
from aaiclick.orchestration.jobs import wait_for_job as wait_for_job
from aaiclick.orchestration.jobs import wait_for_this as wait_for_this
from aaiclick.orchestration.launchers.debug import ajob_test as ajob_test
from aaiclick.orchestration.launchers.debug import job_test as job_test
from aaiclick.orchestration.launchers.worker_main import background_main_loop as background_main_loop
from aaiclick.orchestration.launchers.worker_main import worker_main_loop as worker_main_loop
from aaiclick.orchestration.models import Backfill as Backfill
from aaiclick.orchestration.models import CacheEntry as CacheEntry
from aaiclick.orchestration.models import Dependency as Dependency
from aaiclick.orchestration.models import Event as Event
from aaiclick.orchestration.models import Fire as Fire
from aaiclick.orchestration.models import Group as Group
from aaiclick.orchestration.models import Job as Job
from aaiclick.orchestration.models import RegisteredJob as RegisteredJob
from aaiclick.orchestration.models import Run as Run
from aaiclick.orchestration.models import Task as Task
from aaiclick.orchestration.models import Worker as Worker
from aaiclick.orchestration.models.node_info import NodeDescription as NodeDescription
from aaiclick.orchestration.models.node_info import NodeInfo as NodeInfo
from aaiclick.orchestration.nodes import cordon_node as cordon_node
from aaiclick.orchestration.nodes import drain_node as drain_node
from aaiclick.orchestration.nodes import get_node as get_node
from aaiclick.orchestration.nodes import list_nodes as list_nodes
from aaiclick.orchestration.nodes import remove_node as remove_node
from aaiclick.orchestration.nodes import uncordon_node as uncordon_node
from aaiclick.orchestration.operators import create_result_collector as create_result_collector
from aaiclick.orchestration.operators import filter as filter
from aaiclick.orchestration.operators import foreach as foreach
from aaiclick.orchestration.operators import map as map
from aaiclick.orchestration.operators import reduce as reduce
from aaiclick.orchestration.queries.cached_results import clear_cache as clear_cache
from aaiclick.orchestration.queries.cached_results import list_cache as list_cache
from aaiclick.orchestration.queries.dead_letters import list_dead_letters as list_dead_letters
from aaiclick.orchestration.queries.dead_letters import replay_dead_letter as replay_dead_letter
from aaiclick.orchestration.queries.expectations import Unmet as Unmet
from aaiclick.orchestration.queries.expectations import list_job_expectations as list_job_expectations
from aaiclick.orchestration.queries.expectations import list_task_expectations as list_task_expectations
from aaiclick.orchestration.queries.groups import GroupProgress as GroupProgress
from aaiclick.orchestration.queries.groups import get_group_progress as get_group_progress
from aaiclick.orchestration.queries.health import Check as Check
from aaiclick.orchestration.queries.health import Health as Health
from aaiclick.orchestration.queries.health import health_check as health_check
from aaiclick.orchestration.queries.job_graphs import get_job_graph as get_job_graph
from aaiclick.orchestration.queries.job_graphs import list_job_tasks as list_job_tasks
from aaiclick.orchestration.queries.leases import load_task_lease as load_task_lease
from aaiclick.orchestration.queries.log_following import follow_job_logs as follow_job_logs
from aaiclick.orchestration.queries.log_following import follow_log as follow_log
from aaiclick.orchestration.queries.log_following import read_job_logs as read_job_logs
from aaiclick.orchestration.queries.metrics import collect_metrics as collect_metrics
from aaiclick.orchestration.queries.metrics import render_metrics as render_metrics
from aaiclick.orchestration.queries.pending import why_pending as why_pending
from aaiclick.orchestration.queries.short_ids import find_id as find_id
from aaiclick.orchestration.queries.task_list import list_tasks as list_tasks
from aaiclick.orchestration.registered_jobs import disable_job as disable_job
from aaiclick.orchestration.registered_jobs import enable_job as enable_job
from aaiclick.orchestration.registered_jobs import get_registered_job as get_registered_job
from aaiclick.orchestration.registered_jobs import list_fires as list_fires
from aaiclick.orchestration.registered_jobs import list_registered_jobs as list_registered_jobs
from aaiclick.orchestration.registered_jobs import next_runs as next_runs
from aaiclick.orchestration.registered_jobs import register_job as register_job
from aaiclick.orchestration.registered_jobs import run_job as run_job
from aaiclick.orchestration.registered_jobs import upsert_registered_job as upsert_registered_job
from aaiclick.orchestration.results.task_results import TaskResult as TaskResult
from aaiclick.orchestration.rules.cache_policies import Cache as Cache
from aaiclick.orchestration.rules.cache_policies import CacheMode as CacheMode
from aaiclick.orchestration.rules.failed import Failed as Failed
from aaiclick.orchestration.rules.metrics import Metrics as Metrics
from aaiclick.orchestration.rules.nodes import NodeState as NodeState
from aaiclick.orchestration.rules.nodes import NodeStatus as NodeStatus
from aaiclick.orchestration.rules.pending import Blocker as Blocker
from aaiclick.orchestration.rules.pending import Pending as Pending
from aaiclick.orchestration.rules.pending import Reason as Reason
from aaiclick.orchestration.rules.placement import PlacementConstraints as PlacementConstraints
from aaiclick.orchestration.rules.placement import satisfies_placement as satisfies_placement
from aaiclick.orchestration.rules.retries import RetryPolicy as RetryPolicy
from aaiclick.orchestration.rules.schedules.fires import BackfillStatus as BackfillStatus
from aaiclick.orchestration.rules.schedules.fires import FireOutcome as FireOutcome
from aaiclick.orchestration.rules.schedules.fires import MissedRuns as MissedRuns
from aaiclick.orchestration.rules.schedules.fires import Overlap as Overlap
from aaiclick.orchestration.rules.schedules.fires import TimeState as TimeState
from aaiclick.orchestration.rules.secrets import Secret as Secret
from aaiclick.orchestration.rules.states import PRESERVATION_FULL as PRESERVATION_FULL
from aaiclick.orchestration.rules.states import PRESERVATION_NONE as PRESERVATION_NONE
from aaiclick.orchestration.rules.states import JobStatus as JobStatus
from aaiclick.orchestration.rules.states import PreservationMode as PreservationMode
from aaiclick.orchestration.rules.states import RunType as RunType
from aaiclick.orchestration.rules.states import TaskStatus as TaskStatus
from aaiclick.orchestration.rules.states import WorkerStatus as WorkerStatus
from aaiclick.orchestration.rules.triggers import When as When
from aaiclick.orchestration.rules.values.registry import register_type as register_type
from aaiclick.orchestration.tasks import add_task_to_current_job as add_task_to_current_job
from aaiclick.orchestration.tasks import add_task_to_job as add_task_to_job
from aaiclick.orchestration.tasks import clear_task as clear_task
from aaiclick.orchestration.tasks import get_runs_for_task as get_runs_for_task
from aaiclick.orchestration.tasks import get_task as get_task
from aaiclick.orchestration.tasks import get_task_result as get_task_result
from aaiclick.orchestration.tasks import get_traceback as get_traceback
from aaiclick.orchestration.tasks import load_child_groups as load_child_groups
from aaiclick.orchestration.tasks import load_group_tasks as load_group_tasks
from aaiclick.orchestration.workers import claim_next_task as claim_next_task
from aaiclick.orchestration.workers import count_live_workers as count_live_workers
from aaiclick.orchestration.workers import deregister_worker as deregister_worker
from aaiclick.orchestration.workers import drain_worker as drain_worker
from aaiclick.orchestration.workers import list_workers as list_workers
from aaiclick.orchestration.workers import register_worker as register_worker
from aaiclick.orchestration.workers import worker_heartbeat as worker_heartbeat

__all__ = [
    "Backfill",
    "BackfillStatus",
    "Blocker",
    "Cache",
    "CacheEntry",
    "CacheMode",
    "Check",
    "CircularDependencyError",
    "Context",
    "Dependency",
    "Event",
    "Failed",
    "Fire",
    "FireOutcome",
    "Group",
    "GroupProgress",
    "Health",
    "Job",
    "JobFactory",
    "JobStats",
    "JobStatus",
    "Metrics",
    "MissedRuns",
    "NodeDescription",
    "NodeInfo",
    "NodeState",
    "NodeStatus",
    "Overlap",
    "PRESERVATION_FULL",
    "PRESERVATION_NONE",
    "Pending",
    "PlacementConstraints",
    "PlannedTime",
    "PreservationMode",
    "Reason",
    "RegisteredJob",
    "RetryPolicy",
    "Run",
    "RunType",
    "Secret",
    "Task",
    "TaskError",
    "TaskFactory",
    "TaskResult",
    "TaskSkipped",
    "TaskStatus",
    "TimeState",
    "Unmet",
    "When",
    "Worker",
    "WorkerStatus",
    "add_task_to_current_job",
    "add_task_to_job",
    "ajob_test",
    "as_task",
    "backfill_job",
    "background_main_loop",
    "cancel_backfill",
    "cancel_job",
    "cancel_requested",
    "claim_next_task",
    "clear_cache",
    "clear_task",
    "collect_metrics",
    "compute_job_stats",
    "cordon_node",
    "count_jobs",
    "count_live_workers",
    "create_job",
    "create_result_collector",
    "create_task",
    "deregister_worker",
    "disable_job",
    "drain_node",
    "drain_worker",
    "enable_job",
    "filter",
    "find_id",
    "follow_job_logs",
    "follow_log",
    "foreach",
    "get_backfill",
    "get_current_context",
    "get_current_job_id",
    "get_current_run",
    "get_dependencies_for_job",
    "get_events_for_job",
    "get_group_progress",
    "get_groups_for_job",
    "get_job",
    "get_job_graph",
    "get_job_result",
    "get_logs_dir",
    "get_node",
    "get_registered_job",
    "get_runs_for_task",
    "get_task",
    "get_task_result",
    "get_tasks_for_job",
    "get_traceback",
    "health_check",
    "job",
    "job_test",
    "list_backfills",
    "list_cache",
    "list_dead_letters",
    "list_fires",
    "list_job_errors",
    "list_job_expectations",
    "list_job_tasks",
    "list_jobs",
    "list_nodes",
    "list_registered_jobs",
    "list_task_expectations",
    "list_tasks",
    "list_workers",
    "load_child_groups",
    "load_group_tasks",
    "load_job_groups",
    "load_job_result",
    "load_job_tasks",
    "load_task_lease",
    "map",
    "next_runs",
    "orch_context",
    "plan_backfill",
    "print_job_stats",
    "read_job_logs",
    "read_log",
    "reduce",
    "register_job",
    "register_type",
    "register_worker",
    "remove_node",
    "render_metrics",
    "replay_dead_letter",
    "resolve_job_config",
    "retry_failed_tasks",
    "run_job",
    "satisfies_placement",
    "show_job_result",
    "task",
    "uncordon_node",
    "upsert_registered_job",
    "wait_for_job",
    "wait_for_this",
    "why_pending",
    "worker_heartbeat",
    "worker_main_loop",
]

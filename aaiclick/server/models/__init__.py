"""Everything that the server answers."""

from __future__ import annotations

from aaiclick.server.models.backfills import BackfillAnswer as BackfillAnswer
from aaiclick.server.models.backfills import BackfillPage as BackfillPage
from aaiclick.server.models.backfills import BackfillPlan as BackfillPlan
from aaiclick.server.models.backfills import FireAnswer as FireAnswer
from aaiclick.server.models.backfills import FirePage as FirePage
from aaiclick.server.models.backfills import PlannedAnswer as PlannedAnswer
from aaiclick.server.models.fleet import Alive as Alive
from aaiclick.server.models.fleet import Asked as Asked
from aaiclick.server.models.fleet import AuditAnswer as AuditAnswer
from aaiclick.server.models.fleet import AuditPage as AuditPage
from aaiclick.server.models.fleet import CheckAnswer as CheckAnswer
from aaiclick.server.models.fleet import EventAnswer as EventAnswer
from aaiclick.server.models.fleet import EventPage as EventPage
from aaiclick.server.models.fleet import HealthAnswer as HealthAnswer
from aaiclick.server.models.fleet import WorkerAnswer as WorkerAnswer
from aaiclick.server.models.fleet import WorkerPage as WorkerPage
from aaiclick.server.models.jobs import Cancelled as Cancelled
from aaiclick.server.models.jobs import GraphAnswer as GraphAnswer
from aaiclick.server.models.jobs import GraphEdge as GraphEdge
from aaiclick.server.models.jobs import GraphGroup as GraphGroup
from aaiclick.server.models.jobs import GraphTask as GraphTask
from aaiclick.server.models.jobs import GraphTaskPage as GraphTaskPage
from aaiclick.server.models.jobs import JobAnswer as JobAnswer
from aaiclick.server.models.jobs import JobErrors as JobErrors
from aaiclick.server.models.jobs import JobPage as JobPage
from aaiclick.server.models.jobs import ResultAnswer as ResultAnswer
from aaiclick.server.models.jobs import StatsAnswer as StatsAnswer
from aaiclick.server.models.jobs import TaskErrorAnswer as TaskErrorAnswer
from aaiclick.server.models.objects import ColumnAnswer as ColumnAnswer
from aaiclick.server.models.objects import ObjectList as ObjectList
from aaiclick.server.models.objects import RowsAnswer as RowsAnswer
from aaiclick.server.models.objects import SchemaAnswer as SchemaAnswer
from aaiclick.server.models.problems import Problem as Problem
from aaiclick.server.models.problems import WrongField as WrongField
from aaiclick.server.models.registered_jobs import RegisteredJobAnswer as RegisteredJobAnswer
from aaiclick.server.models.registered_jobs import RegisteredJobList as RegisteredJobList
from aaiclick.server.models.tasks import BlockerAnswer as BlockerAnswer
from aaiclick.server.models.tasks import Cleared as Cleared
from aaiclick.server.models.tasks import DeadLetterPage as DeadLetterPage
from aaiclick.server.models.tasks import PendingAnswer as PendingAnswer
from aaiclick.server.models.tasks import RunAnswer as RunAnswer
from aaiclick.server.models.tasks import RunList as RunList
from aaiclick.server.models.tasks import TaskAnswer as TaskAnswer
from aaiclick.server.models.tasks import TaskDetail as TaskDetail

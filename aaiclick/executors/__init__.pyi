from aaiclick.executors.rest_call import rest as rest
from aaiclick.executors.shell_command import shell as shell
from aaiclick.orchestration.submitting.executors import executor_types as executor_types

__all__ = ["executor_types", "rest", "shell"]

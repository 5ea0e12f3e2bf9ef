"""Re-exports the operators under their older import path; see `aaiclick.orchestration.operators`."""

from aaiclick.orchestration.operators import create_result_collector, filter, foreach, map, reduce

__all__ = ["create_result_collector", "filter", "foreach", "map", "reduce"]

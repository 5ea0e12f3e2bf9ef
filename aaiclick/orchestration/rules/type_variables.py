"""The type variables of the public API: parameters and results of tasks and jobs. Used by type checkers only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# The type variables of typing have no defaults yet. Checkers know typing_extensions even where it is not installed.
if TYPE_CHECKING:
    from typing_extensions import ParamSpec, TypeVar

    P = ParamSpec("P", default=...)
    R = TypeVar("R", default=Any)
    Given = TypeVar("Given", default=Any, covariant=True)

    class AnyValue(Any):  # type: ignore[misc]  # that is what it is for
        """Base of placeholders (a group, a Secret) whose value a checker cannot know: accepted where any value is."""
else:
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")
    Given = TypeVar("Given", covariant=True)
    AnyValue = object

__all__ = ["AnyValue", "Given", "P", "R"]

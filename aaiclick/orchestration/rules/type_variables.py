"""The type variables of the front door: what a task or a workflow takes, and what it gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # those of typing have no defaults yet; checkers know these without a package that is installed
    from typing_extensions import ParamSpec, TypeVar

    P = ParamSpec("P", default=...)
    R = TypeVar("R", default=Any)
    Given = TypeVar("Given", default=Any, covariant=True)

    class AnyValue(Any):  # type: ignore[misc]  # that is what it is for
        """What stands for a value that no checker can know: a group, a secret. It is taken where any value is."""
else:
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")
    Given = TypeVar("Given", covariant=True)
    AnyValue = object

__all__ = ["AnyValue", "Given", "P", "R"]

"""The module name under which workers import the script that runs as `__main__`."""

from __future__ import annotations

import functools
import keyword
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from aaiclick.module_path import found_instead
from aaiclick.orchestration.rules.validation import shorten

MAIN = ("__main__", "__mp_main__")

_runs_here: ContextVar[bool] = ContextVar("runs_here", default=False)


@contextmanager
def running_here() -> Iterator[None]:
    """Declare that graphs built in the block run in this process only: functions of `__main__` can be found by name."""
    token = _runs_here.set(True)
    try:
        yield
    finally:
        _runs_here.reset(token)


def runs_here() -> bool:
    """Return whether the caller is inside a block of `running_here`."""
    return _runs_here.get()


@functools.lru_cache(maxsize=16)
def script_name(spec_name: str | None, file: str | None) -> tuple[str | None, str, str]:
    """Return the script's module name and two empty texts; or None, the cause and a hint if it cannot be imported."""
    if spec_name is not None and spec_name != "__main__":
        return spec_name, "", ""  # python -m package.module; for a package, the module is package.__main__
    if file is None:
        cause = (
            "it is defined in an interactive session, in a notebook, with -c or on stdin, which no worker can import"
        )
        return None, cause, "Move it into a module, and import it from there."
    stem, extension = os.path.splitext(os.path.basename(file))
    if extension != ".py" or stem == "__main__" or not stem.isidentifier() or keyword.iskeyword(stem):
        cause = f"its script {shorten(os.path.basename(file))} cannot be imported under that name"
        return None, cause, "Rename the script to a valid module name, such as my_flow.py."
    if (other := found_instead(stem, file)) is not None:
        cause = f"its script is called {stem}, and importing that finds {other} first"
        return None, cause, "Rename the script."
    return stem, "", ""


def running_script() -> str | None:
    """Return the module name of this process's script, which must not be imported again; None if it has none."""
    main = sys.modules.get("__main__")
    return script_name(getattr(getattr(main, "__spec__", None), "name", None), getattr(main, "__file__", None))[0]

"""The executor `shell`: the body of a task is a command, which runs in a process group of its own."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypedDict, Unpack, get_args

from aaiclick.config import settings
from aaiclick.errors import CommandFailed, CommandFailedForGood, InputError, NoContext, TaskSkipped
from aaiclick.executors.making import executor_task
from aaiclick.executors.outputs import Output, ResultOf, result_in, write_log
from aaiclick.executors.process_groups import Command, run_command
from aaiclick.orchestration.execution.runs.current import get_current_run
from aaiclick.orchestration.rules.options import TaskOptions
from aaiclick.orchestration.rules.validation import shorten

Argv = str | Sequence[Any]

GRACE_S_MAX = 3600.0
"""As long as AAICLICK_CANCEL_GRACE_SECONDS may be."""


class ShellOptions(TypedDict, total=False):
    """The options of a command; see docs/guides/executors.md."""

    env: Mapping[str, Any]
    inherit_env: bool
    cwd: str | None
    stdin: str | bytes | None
    success_codes: Sequence[int]
    skip_codes: Sequence[int]
    retry_codes: Sequence[int] | None
    result: ResultOf
    result_file: str | None
    cpu_s: int | None
    memory_mb: int | None
    grace_s: float | None


class ShellTaskOptions(ShellOptions, TaskOptions, total=False):
    """The options of a command, and of its task."""


def shell(argv: Argv, **options: Unpack[ShellTaskOptions]) -> Any:
    """Make a task whose body is a command: `shell(["ls", "-l"], max_retries=3)`; a text is given to `/bin/sh -c`.

    Its words may be other tasks, and Secrets.
    """
    if unknown := options.keys() - ShellTaskOptions.__annotations__.keys():
        _refuse("shell", ", ".join(sorted(unknown)), "there are no such options")
    check_options(argv, options)
    return executor_task("shell", _label(argv), {"argv": argv, **options})


async def run(
    argv: Any,
    *,
    env: Any = None,
    inherit_env: bool = True,
    cwd: Any = None,
    stdin: Any = None,
    success_codes: Any = (0,),
    skip_codes: Any = (),
    retry_codes: Any = None,
    result: Any = "last_line",
    result_file: Any = None,
    cpu_s: int | None = None,
    memory_mb: int | None = None,
    grace_s: float | None = None,
) -> object:
    """Run a command and return its result. This is the body of tasks with the executor `shell`.

    Raises CommandFailed for an exit code that is not a success; TaskSkipped for one of `skip_codes`.
    """
    codes = ShellOptions(success_codes=success_codes, skip_codes=skip_codes, retry_codes=retry_codes)
    check_options(argv, {**codes, "result": result, "cpu_s": cpu_s, "memory_mb": memory_mb, "grace_s": grace_s})
    words = ["/bin/sh", "-c", argv] if isinstance(argv, str) else [_text(word, "argv") for word in argv]
    output = Output(result if result_file is None else "none")
    place = None if cwd is None else _text(cwd, "cwd")
    command = Command(
        words,
        _environment(env or {}, inherit=inherit_env),
        cwd=place,
        stdin=stdin.encode() if isinstance(stdin, str) else stdin or b"",
        cpu_s=cpu_s,
        memory_mb=memory_mb,
        grace_s=settings().cancel_grace_s / 3 if grace_s is None else grace_s,
    )
    shown = shorten(argv, 60) if isinstance(argv, str) else shorten(Path(words[0]).name)
    try:
        code = await run_command(command, output.take, lambda chunk: write_log(sys.stderr, chunk))
    except OSError as error:
        cause = f"cannot be started: {error.strerror or error}"
        hint = "Is it installed where the worker runs, and is cwd right?"
        raise CommandFailed(command=shown, cause=cause, hint=hint, code=None) from error
    _judge(code, shown, codes)
    return output.result() if result_file is None else result_in(Path(place or ".") / result_file, result)


def _judge(code: int, shown: str, options: ShellOptions) -> None:
    """Raise the error that an exit code stands for; nothing for a success."""
    if code in options.get("success_codes", (0,)):
        return
    if code in options.get("skip_codes", ()):
        raise TaskSkipped(f"The command {shown} ended with exit code {code}, which skips the task.")
    again = options.get("retry_codes")
    kind = CommandFailed if again is None or code in again else CommandFailedForGood
    cause = f"ended with exit code {code}" if code >= 0 else f"was ended by {_signal_name(-code)}"
    raise kind(command=shown, cause=cause, hint="Its output is in the log.", code=code)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


# ---------------------------------------------------------------- what goes in


def check_options(argv: Argv, options: ShellOptions) -> None:
    """Raise InputError for options that cannot be used, as far as they are known before the task runs."""
    if not isinstance(argv, str | list | tuple) or not argv:
        _refuse("argv", argv, 'it must be a list of words such as ["ls", "-l"], or a text for /bin/sh')
    if (result := options.get("result", "last_line")) not in get_args(ResultOf):
        _refuse("result", result, f"it must be one of {', '.join(get_args(ResultOf))}")
    for field in ("success_codes", "skip_codes", "retry_codes"):
        codes = options.get(field, ())
        if codes is None and field == "retry_codes":
            continue
        if not isinstance(codes, list | tuple | set) or not all(map(_is_code, codes)):
            _refuse(field, codes, "it must be a list of exit codes from 0 to 255, or minus the number of a signal")
    grace_s = options.get("grace_s")
    if grace_s is not None and (type(grace_s) not in (int, float) or not 0 <= grace_s <= GRACE_S_MAX):
        _refuse("grace_s", grace_s, f"it must be a number of seconds from 0 to {GRACE_S_MAX:g}")
    for field in ("cpu_s", "memory_mb"):
        limit = options.get(field)
        if limit is not None and (type(limit) is not int or limit < 1):
            _refuse(field, limit, "it must be a whole number from 1 on")


def _is_code(code: object) -> bool:
    return type(code) is int and -64 <= code <= 255


def _environment(given: Mapping[str, object], *, inherit: bool) -> dict[str, str]:
    """Return the variables of the command: the worker's, those that name the run, and those given."""
    env = dict(os.environ) if inherit else {"PATH": os.environ.get("PATH", os.defpath)}
    try:
        run = get_current_run()
    except NoContext:  # called by hand
        pass
    else:
        env |= {"TASK_ID": str(run.task_id), "JOB_ID": str(run.job_id), "TASK_ATTEMPT": str(run.attempt)}
        env["IDEMPOTENCY_KEY"] = run.idempotency_key
    return env | {name: _text(value, f"env {name}") for name, value in given.items()}


def _text(value: object, field: str) -> str:
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, bool) or not isinstance(value, str | int | float) or "\x00" in str(value):
        _refuse(field, value, "it must be a text without NUL, or a number")
    return str(value)


def _label(argv: Argv) -> str:
    first = argv.split()[0] if isinstance(argv, str) and argv.split() else argv[0]
    return Path(first).name[:100] or "shell" if isinstance(first, str) else "shell"


def _refuse(field: str, value: object, rule: str) -> NoReturn:
    raise InputError(field=field, value=shorten(value), rule=rule, hint="See the guide on executors.")

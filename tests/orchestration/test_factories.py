"""Tasks and jobs without decorators: what is accepted, what is refused, and that a refusal writes nothing."""

from __future__ import annotations

import logging
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from aaiclick.errors import (
    CircularDependencyError,
    EntrypointError,
    InputError,
    SignatureMismatch,
    SubmitDuringImport,
    UnknownNode,
    ValueNotPortable,
    ValueTooLarge,
)
from aaiclick.orchestration import (
    Group,
    Task,
    as_task,
    count_jobs,
    create_job,
    create_task,
    get_dependencies_for_job,
    get_tasks_for_job,
)
from aaiclick.orchestration.rules.values.encoding import decode_kwargs
from tests.orchestration import sample_flows as flows
from tests.support.front_door import local, state

__all__ = ["local", "state"]

HERE = "tests.orchestration.sample_flows"


def module(folder: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An importable module of the test's own."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, name, raising=False)


# ---------------------------------------------------------------- create_task


def test_a_task_is_made_from_a_name_or_a_function() -> None:
    by_name, by_function, by_task = (create_task(way) for way in (f"{HERE}.plain", flows.plain, flows.add))
    assert [made.entrypoint for made in (by_name, by_function, by_task)] == [
        f"{HERE}.{n}" for n in ("plain", "plain", "add")
    ]
    assert (by_name.name, by_name.kwargs, by_name.job_id) == ("plain", {}, None)


def test_a_task_takes_its_options() -> None:
    group = Group("g")
    made = create_task(flows.plain, {"a": 1}, name="n", group_id=group.id, max_retries=2, timeout_s=5, priority=3)
    assert (made.name, made.group_id, made.max_retries, made.timeout_s, made.priority) == ("n", group.id, 2, 5, 3)


def test_values_in_the_seeds_form_are_values() -> None:
    made = create_task(flows.echo, {"value": {"object_type": "pyobj", "value": {"threshold": 0.5}}})
    assert decode_kwargs(made.kwargs_json) == {"value": {"threshold": 0.5}}


def test_references_to_objects_keep_their_fields_and_older_names() -> None:
    made = create_task(flows.echo, {"value": {"object_type": "view", "table_id": "t1", "offset": 0, "limit": 10}})
    assert made.kwargs == {"value": {"object_type": "view", "table": "t1", "offset": 0, "limit": 10}}


@pytest.mark.parametrize(
    "reference",
    [
        {"object_type": "object"},
        {"object_type": "object", "table": "t1", "where": "1"},
        {"object_type": "view", "table": "t1", "limit": -1},
        {"object_type": "view", "table": "a\0b"},
        {"object_type": "pyobj"},
    ],
)
def test_a_reference_with_wrong_fields_is_refused(reference: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"kwargs\.value"):
        create_task(flows.echo, {"value": reference})


@pytest.mark.parametrize("kwargs", [[1], "a", 5, [("a", 1)]])
def test_kwargs_must_be_a_dict(kwargs: Any) -> None:
    with pytest.raises(InputError, match="kwargs"):
        create_task(flows.plain, kwargs)


@pytest.mark.parametrize(
    ("kwargs", "place"),
    [
        ({"value": threading.Lock()}, "kwargs.value"),
        ({"value": sys.stdin}, "kwargs.value"),
        ({"value": (number for number in range(3))}, "kwargs.value"),
        ({"value": lambda: None}, "kwargs.value"),
        ({"value": [1, {"x": object()}]}, r"kwargs.value\[1\].x"),
        ({1: "value"}, "kwargs"),
        ({"a\0": "value"}, "kwargs"),
    ],
)
def test_what_cannot_travel_is_refused_with_its_place(kwargs: dict[str, object], place: str) -> None:
    with pytest.raises(ValueNotPortable, match=place):
        create_task(flows.echo, kwargs)


def test_kwargs_beyond_the_limit_are_refused_with_advice() -> None:
    with pytest.raises(ValueTooLarge, match="Pass an Object"):
        create_task(flows.echo, {"value": ["x" * 100_000] * 2000})


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan"), "5", True])
def test_a_timeout_must_be_a_number_of_seconds(timeout_s: Any) -> None:
    with pytest.raises(InputError, match="timeout_s"):
        create_task(flows.plain, timeout_s=timeout_s)


@pytest.mark.parametrize(
    "options",
    [
        {"timeout_s": -1},
        {"timeout_s": "5"},
        {"priority": "5"},
        {"critical": "no"},
    ],
)
def test_a_task_made_directly_has_the_same_rules(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Task(f"{HERE}.plain", **options)


# ---------------------------------------------------------------- create_job


async def test_a_job_has_one_entry_in_any_form(state: str) -> None:
    jobs = [
        await create_job("by name", f"{HERE}.plain"),
        await create_job("by name with kwargs", f"{HERE}.plain", kwargs={"a": 2}),
        await create_job("by function", flows.plain),
        await create_job("by decorated function", flows.nothing),
        await create_job("by task", flows.add(1, 2)),
        await create_job("by task of create_task", entry=create_task(flows.plain, {"a": 3})),
    ]
    assert [job.total_tasks for job in jobs] == [1] * 6
    assert [(await get_tasks_for_job(job.id))[0].job_id for job in jobs] == [job.id for job in jobs]
    assert await count_jobs() == 6


async def test_a_job_takes_a_list_of_tasks_groups_and_dicts(state: str) -> None:
    with Group("g") as group:
        inside = flows.add(1, 2)
    after = flows.total([inside])
    made = await create_job(
        "mixed", tasks=[group, after, {"entrypoint": f"{HERE}.plain", "kwargs": {"a": 1}, "name": "x"}]
    )
    stored = await get_tasks_for_job(made.id)
    assert [task.name for task in stored] == ["add", "total", "x"]
    assert stored[0].group_id == group.id
    assert [(edge.previous_id, edge.next_id) for edge in await get_dependencies_for_job(made.id)] == [
        (as_task(inside).id, as_task(after).id)
    ]


async def test_a_job_may_begin_without_tasks(state: str) -> None:
    made = await create_job("later", tasks=[])
    assert (made.status, made.total_tasks) == ("pending", 0)


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "neither": ({}, InputError, "exactly one"),
    "both": ({"entry": flows.plain, "tasks": []}, InputError, "exactly one"),
    "a task with kwargs": (
        {"entry": lambda: flows.add(1, 2), "kwargs": {"a": 1}},
        InputError,
        "a Task has its own arguments",
    ),
    "tasks is a task": ({"tasks": lambda: flows.add(1, 2)}, InputError, "it must be a list"),
    "tasks is a text": ({"tasks": f"{HERE}.plain"}, InputError, "it must be a list"),
    "tasks has a number": ({"tasks": [5]}, InputError, "each must be a Task"),
    "tasks has a text": ({"tasks": [f"{HERE}.plain"]}, InputError, "each must be a Task"),
    "a dict without entrypoint": ({"tasks": [{"kwargs": {}}]}, InputError, "each must be a Task"),
    "a dict with unknown fields": ({"tasks": [{"entrypoint": f"{HERE}.plain", "retries": 1}]}, InputError, "retries"),
    "a dict with wrong kwargs": ({"tasks": [{"entrypoint": f"{HERE}.plain", "kwargs": 5}]}, InputError, "kwargs"),
    "entry is a number": ({"entry": 5}, EntrypointError, "cannot be called"),
    "entry is a lambda": ({"entry": lambda: lambda: 1}, EntrypointError, "lambda"),
    "entry is built in": ({"entry": "os.system"}, EntrypointError, "built into Python"),
    "entry is a class": ({"entry": "decimal.Decimal"}, EntrypointError, "a class"),
    "entry is a module": ({"entry": "os.path"}, EntrypointError, "cannot be called"),
    "entry is a workflow": ({"entry": f"{HERE}.pipeline"}, EntrypointError, "it is a workflow"),
    "entry is a workflow itself": ({"entry": lambda: flows.single}, EntrypointError, "it is a workflow"),
    "entry has no dot": ({"entry": "plain"}, EntrypointError, "not a dotted name"),
    "entry is empty": ({"tasks": [{"entrypoint": "", "name": "x"}]}, InputError, "importable name"),
    "entry has a space": ({"tasks": [{"entrypoint": "a b.c", "name": "x"}]}, EntrypointError, "not a dotted name"),
    "entry is long": ({"tasks": [{"entrypoint": "a." + "b" * 600, "name": "x"}]}, InputError, "500 characters"),
    "entry of main": ({"entry": "__main__.f"}, EntrypointError, "a different module in every process"),
    "attribute is missing": ({"entry": f"{HERE}.no_such"}, EntrypointError, "has no no_such"),
    "kwargs do not fit": (
        {"entry": f"{HERE}.add", "kwargs": {"a": 1, "c": 2}},
        SignatureMismatch,
        "missing: 'b'; unexp",
    ),
    "only by position": (
        {"entry": f"{HERE}.only_by_position", "kwargs": {"a": 1, "b": 2}},
        SignatureMismatch,
        "position",
    ),
    "priority": ({"entry": flows.plain, "priority": "high"}, InputError, "priority"),
    "large priority": ({"entry": flows.plain, "priority": 2**31}, InputError, "priority"),
    "timeout": ({"entry": flows.plain, "timeout_s": -1}, InputError, "timeout_s"),
    "fail fast": ({"entry": flows.plain, "fail_fast": "yes"}, InputError, "fail_fast"),
    "nan timeout": ({"entry": flows.plain, "timeout_s": float("nan")}, InputError, "timeout_s"),
    "preservation": ({"entry": flows.plain, "preservation_mode": "SOME"}, InputError, "preservation_mode"),
    "key": ({"entry": flows.plain, "key": "a\nb"}, InputError, "key"),
    "unknown group": ({"entry": lambda: create_task(flows.plain, group_id=5)}, UnknownNode, "group 5"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_is_wrong_with_a_job_is_refused_everywhere_and_nothing_is_written(state: str, case: str) -> None:
    arguments, kind, said = REFUSED[case]
    made = {
        name: value() if getattr(value, "__name__", "") == "<lambda>" else value for name, value in arguments.items()
    }
    with pytest.raises(kind, match=said):
        await create_job("refused", **made)
    assert await count_jobs() == 0


@pytest.mark.parametrize(
    "name", ["", " ", "a\0b", "\ud800", "a\u202eb", "\x1b[2J", "a\nb", "x" * 10_000, " a", "a ", "\u200b", 5, None]
)
async def test_a_jobs_name_has_the_same_rule_everywhere(state: str, name: Any) -> None:
    with pytest.raises(InputError, match="Job name"):
        await create_job(name, flows.plain)
    assert await count_jobs() == 0


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "Робот 数据 😀", "a'; DROP TABLE jobs; --", "x" * 200])
async def test_a_strange_but_visible_name_is_kept_exactly(state: str, name: str) -> None:
    made = await create_job(name, create_task(flows.plain, name=name))
    (stored,) = await get_tasks_for_job(made.id)
    assert (made.name, stored.name) == (name, name)


async def test_names_may_repeat_and_differ_in_case_accent_or_blank(state: str) -> None:
    for name in ("a", "a", "A", "á", "a b", "a  b"):
        await create_job(name, flows.plain)
    assert await count_jobs() == 6


async def test_a_cycle_is_refused_with_its_path_and_nothing_is_written(state: str) -> None:
    first, second = create_task(flows.plain, name="first"), create_task(flows.plain, name="second")
    first >> second >> first
    with pytest.raises(CircularDependencyError, match=r"'first' → task 'second'|'second' → task 'first'"):
        await create_job("cycle", tasks=[first, second])
    assert await count_jobs() == 0


# ---------------------------------------------------------------- entrypoints that misbehave when imported


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import sys; sys.exit(3)", r"sys\.exit\(3\)"),
        ("raise ValueError('broken')", "ValueError: broken"),
        ("import no_such_module_at_all", "no_such_module_at_all"),
        ("def f(:", "SyntaxError"),
        ("raise RuntimeError('postgresql://me:hunter2@h/d')", r"me:\*\*\*@h"),
    ],
)
async def test_a_module_that_cannot_be_imported_is_refused_with_the_reason(
    local: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    module(tmp_path / "m", "misbehaves", text, monkeypatch)
    with pytest.raises(EntrypointError, match=said):
        await create_job("x", "misbehaves.f")
    assert await count_jobs() == 0


async def test_a_missing_module_is_refused_locally_and_warned_about_elsewhere(
    state: str, dialect: str, caplog: pytest.LogCaptureFixture
) -> None:
    entry = "no_such_module_at_all.f"
    if dialect == "sqlite":
        with pytest.raises(EntrypointError, match="there is no module no_such_module_at_all"):
            await create_job("x", entry)
        assert await count_jobs() == 0
        return
    with caplog.at_level(logging.WARNING, "aaiclick"):
        made = await create_job("x", entry)
    assert made.total_tasks == 1
    assert "Workers must be able to import it" in caplog.text


@pytest.mark.parametrize(
    "submits",
    [
        "made = flow()",
        "import asyncio; asyncio.run(create_job('again', 'submits_at_import.work'))",
        "import asyncio; asyncio.run(add_task_to_job(5, 'submits_at_import.work'))",
        "job_test(flow)",
        "import asyncio; asyncio.run(Context(5).apply(work()))",
        "flow.options(key='k')()",
    ],
)
def test_a_module_that_submits_when_it_is_imported_does_not_submit_again(
    local: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, submits: str
) -> None:
    text = f"""
from aaiclick.orchestration import *
@task
def work(): ...
@job
def flow(): return work()
{submits}
"""
    module(tmp_path / "m", "submits_at_import", text, monkeypatch)
    with pytest.raises(EntrypointError, match="SubmitDuringImport") as refused:
        resolve_here("submits_at_import.work")
    assert isinstance(refused.value.__cause__, SubmitDuringImport)
    assert 'if __name__ == "__main__":' in str(refused.value)


async def test_a_module_that_submits_when_it_is_imported_is_told_so_inside_a_loop_too(
    local: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "from aaiclick.orchestration import job, task\n@task\ndef work(): ...\n@job\ndef flow(): work()\nflow()\n"
    module(tmp_path / "m", "submits_in_a_loop", text, monkeypatch)
    with pytest.raises(EntrypointError, match="SubmitDuringImport"):
        await create_job("x", "submits_in_a_loop.work")
    assert await count_jobs() == 0


def resolve_here(entrypoint: str) -> object:
    from aaiclick.orchestration.submitting.entrypoints import resolve

    return resolve(entrypoint)

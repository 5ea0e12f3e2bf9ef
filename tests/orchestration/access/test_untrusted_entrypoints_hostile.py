"""Names from outside that lead elsewhere than they seem to: refused when they come, and again where they would run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aaiclick.config import reset_settings
from aaiclick.errors import AaiclickError, EntrypointError
from aaiclick.orchestration.access import untrusted_entrypoints
from aaiclick.orchestration.access.untrusted_entrypoints import already_trusted, from_outside
from aaiclick.orchestration.launchers.debug import ajob_test
from aaiclick.orchestration.models import Job
from aaiclick.orchestration.registered_jobs import register_job, run_job
from aaiclick.orchestration.rules.naming.untrusted_entrypoints import arguments_from_outside
from aaiclick.orchestration.submitting.entrypoints import resolve
from tests.support.front_door import local

__all__ = ["local"]

FLOWS = """
import functools, os, subprocess, types
import aaiclick, aaiclick.orchestration.expansions
import somebodys_lib, somebodys_lib as helpers
from aaiclick.data import create_object_from_value
from aaiclick.orchestration import create_task, job, operators, register_job, run_job, task
from aaiclick.orchestration.expansions import _expand_map
from aaiclick.orchestration.models import Task
from aaiclick.orchestration.operators import map as operator
from somebodys_lib import Base, borrowed, deco, relabelled
from user_flows.etl import daily

run = task(subprocess.getoutput)
part = task(functools.partial(subprocess.getoutput, "id"))
shell = task(functools.wraps(daily.function)(somebodys_lib.shell))
itself = task(somebodys_lib.itself)
command = task(os.system)
hidden = task(aaiclick.orchestration.expansions._expand_map.function)

@task
@functools.wraps(subprocess.getoutput)
def lying(cmd): return subprocess.getoutput(cmd)

class Loop:
    def __call__(self, **kwargs): return subprocess.getoutput("id")
loop = task(Loop())

class Flows:
    @staticmethod
    @task
    def load(): return "loaded"
    class Inner:
        load = task(lambda: 1)
    lib = somebodys_lib

class Sub(Base): ...
kept = types.SimpleNamespace(load=daily)
flows = Flows()
listed = [daily]

@task
@deco
def decorated(): return "decorated"

def make(text):
    @task
    def made(): return text
    return made
made = make("made")

def plain(x=1): return x * 2

@task
def doubled(x): return x * 2

@task
async def numbers(): return await create_object_from_value([1, 2, 3])

@job
def mapped(cbk, verb="map"): return getattr(operators, verb)(cbk, numbers())

@task
def step(cbk): return operators.map(cbk, numbers())

@job
def deep(cbk): return step(cbk)

@job
def own(): return operators.map(plain, numbers())

@job
def own_task(): return operators.map("user_flows.doubled", numbers())

@task
def called(name, how):
    if how == "create_task":
        return create_task(name, {})
    if how == "Task":
        return Task(name)
    return create_task(plain if name == "plain" else doubled)

@task
async def runs(name, how):
    job = await (run_job("inner", name) if how == "run" else register_job("inner", name))
    return str(job.id)

def __getattr__(name):
    if name == "lazy":
        return daily
    if name == "lazily_elsewhere":
        return borrowed
    raise AttributeError(name)
"""
LIBRARY = """
import functools, subprocess
from aaiclick.orchestration import task

@task
def borrowed(cmd="id"): return subprocess.getoutput(cmd)

class Base:
    @staticmethod
    @task
    def shell(cmd="id"): return subprocess.getoutput(cmd)

def _relabelled(cmd="id"): return subprocess.getoutput(cmd)
_relabelled.__module__, _relabelled.__qualname__ = "user_flows", "relabelled"
relabelled = task(_relabelled)

def shell(cmd="id"): return subprocess.getoutput(cmd)

def itself(cmd="id"): return subprocess.getoutput(cmd)
itself.__wrapped__ = itself

def deco(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs): return function(*args, **kwargs)
    return wrapper
"""
MODULES = {
    "user_flows/__init__.py": FLOWS,
    "user_flows/etl.py": "from aaiclick.orchestration import task\n@task\ndef daily(): return 'daily'\n"
    "@task\ndef weekly(): return 'weekly'\n",
    "user_flows/__main__.py": "raise SystemExit('a script was run')\n",
    "user_flows/alias.py": "import os, sys, subprocess\nsys.modules[__name__] = subprocess\n",
    "user_flows_evil.py": "from aaiclick.orchestration import task\n@task\ndef load(): return 'evil'\n",
    "somebodys_lib.py": LIBRARY,
}
HOSTILE = [
    "user_flows.aaiclick.orchestration.expansions._expand_map",
    "user_flows.aaiclick.orchestration.parts._map_part",
    "user_flows._expand_map",
    "user_flows.hidden",
    "user_flows.operators._expand_reduce",
    "user_flows.operator",
    "user_flows.somebodys_lib.borrowed",
    "user_flows.helpers.borrowed",
    "user_flows.borrowed",
    "user_flows.lazily_elsewhere",
    "user_flows.relabelled",
    "user_flows.run",
    "user_flows.part",
    "user_flows.shell",
    "user_flows.itself",
    "user_flows.command",
    "user_flows.lying",
    "user_flows.loop",
    "user_flows.Base.shell",
    "user_flows.Sub.shell",
    "user_flows.Flows.lib.borrowed",
    "user_flows.kept.load",
    "user_flows.flows.load",
    "user_flows.listed.pop",
    "user_flows.os.system",
    "user_flows.subprocess.getoutput",
    "user_flows.alias.getoutput",
    "user_flows.daily.function",
    "user_flows.daily.options",
    "user_flows.daily.__call__",
    "user_flows.daily.__wrapped__",
    "user_flows.plain",
    "user_flows.plain.__globals__",
    "user_flows.__builtins__.eval",
    "user_flows.__main__.load",
    "user_flows.__loader__.exec_module",
    "user_flows.__getattr__",
    "user_flows.Flows.__class__",
    "user_flows._nothing",
    "user_flows",
    "user_flows_evil.load",
    "aaiclick.orchestration.expansions._expand_map",
    "os.system",
    "~user_flows.plain",
    "@user_flows.plain",
    "@@user_flows.daily",
    "@~user_flows.daily",
]
HONEST = {
    "user_flows.etl.daily": "daily",
    "user_flows.daily": "daily",
    "user_flows.lazy": "daily",
    "user_flows.Flows.load": "loaded",
    "user_flows.decorated": "decorated",
    "user_flows.made": "made",
}


@pytest.fixture(autouse=True)
def allowed(local: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AAICLICK_ENTRYPOINT_PREFIXES", "user_flows")
    place = tmp_path / "app"
    for name, text in MODULES.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    monkeypatch.syspath_prepend(str(place))
    untrusted_entrypoints._known.clear()
    reset_settings()
    yield
    for name in [each for each in sys.modules if each.partition(".")[0] in ("user_flows", "somebodys_lib")]:
        del sys.modules[name]
    reset_settings()


def allow(monkeypatch: pytest.MonkeyPatch, prefixes: str) -> None:
    monkeypatch.setenv("AAICLICK_ENTRYPOINT_PREFIXES", prefixes)
    reset_settings()
    untrusted_entrypoints._known.clear()


async def submit(entrypoint: str, **kwargs: object) -> Job:
    async with from_outside(entrypoint) as name:
        return await run_job("x", name, kwargs)


async def stored(entrypoint: str, **kwargs: object) -> Job:
    """A job as the server has it stored, without the child that looks."""
    return await run_job("x", f"@{entrypoint}", kwargs)


def error_of(job: Job) -> str:
    return " ".join(task.error or "" for task in job.tasks)


# ---------------------------------------------------------------- entrypoints


@pytest.mark.parametrize("prefixes", ["user_flows", ""])
@pytest.mark.parametrize("name", HOSTILE)
def test_where_it_runs_a_name_that_leads_elsewhere_is_refused(
    name: str, prefixes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker without the setting too; there it is known what the name said, and not what is allowed."""
    if prefixes == "" and name == "user_flows_evil.load":
        return
    allow(monkeypatch, prefixes)
    with pytest.raises(EntrypointError):
        resolve(f"@{name}")


@pytest.mark.parametrize("name", HOSTILE[:8:3])
async def test_when_it_comes_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(EntrypointError):
        await submit(name)
    assert "user_flows" not in sys.modules


@pytest.mark.parametrize("prefixes", ["user_flows", ""])
@pytest.mark.parametrize("name", HONEST)
def test_what_is_written_there_is_found_by_its_names(name: str, prefixes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, prefixes)
    assert resolve(f"@{name}").function() == HONEST[name]  # type: ignore[attr-defined]
    assert resolve(f"@{name}").function() == HONEST[name]  # type: ignore[attr-defined]


async def test_the_attack_of_old_runs_nothing(tmp_path: Path) -> None:
    """Through a module that the allowed one imports, to a function of ours that calls whatever it is told."""
    given = {"verb": "map", "cbk": "subprocess.getoutput", "obj": [f"touch {tmp_path}/pwned"], "partition": None}
    with pytest.raises(EntrypointError, match="leads through a module"):
        await submit(HOSTILE[0], **given, args=[], kwargs={}, batch=False, fields={})
    stored = await run_job("x", "user_flows.daily")
    stored.tasks[0].entrypoint = f"@{HOSTILE[0]}"
    with pytest.raises(EntrypointError):
        resolve(stored.tasks[0].entrypoint)
    assert not (tmp_path / "pwned").exists()


def test_a_function_can_be_allowed_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, "user_flows.etl.daily, user_flows.Flows")
    assert resolve("@user_flows.etl.daily").function() == "daily"  # type: ignore[attr-defined]
    assert resolve("@user_flows.Flows.load").function() == "loaded"  # type: ignore[attr-defined]
    for other in ("user_flows.etl.weekly", "user_flows.etl.daily2", "user_flows.daily", "user_flows.decorated"):
        with pytest.raises(EntrypointError, match=r"may be run: user_flows\.etl\.daily, user_flows\.Flows"):
            resolve(f"@{other}")


async def test_ours_are_no_target_even_if_they_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, "aaiclick,user_flows,subprocess")
    for name in ("aaiclick.orchestration.expansions._expand_map", "user_flows.hidden", "user_flows._expand_map"):
        with pytest.raises(EntrypointError, match="own functions"):
            await stored(name)
    async with from_outside("aaiclick.orchestration.examples.orchestration_basic.pipeline") as name:
        assert name.startswith("@aaiclick")


async def test_what_was_registered_from_outside_is_judged_at_each_run() -> None:
    async with from_outside("user_flows.daily") as name:
        await register_job("nightly", name)
    async with already_trusted("@user_flows.daily"):
        job = await run_job("nightly")
    assert job.tasks[0].entrypoint == "@user_flows.daily"
    assert (await ajob_test(job)).status == "completed"


# ---------------------------------------------------------------- what arguments name

CALLBACKS = [
    "subprocess.getoutput",
    "user_flows.run",
    "user_flows.plain",
    "user_flows.os.system",
    "somebodys_lib.borrowed",
]


@pytest.mark.parametrize("flow", ["mapped", "deep"])
@pytest.mark.parametrize("callback", CALLBACKS)
async def test_a_callback_that_came_with_the_arguments_obeys_the_same_rule(flow: str, callback: str) -> None:
    done = await ajob_test(await stored(f"user_flows.{flow}", cbk=callback))
    assert done.status == "failed"
    assert "from outside" in error_of(done)


@pytest.mark.parametrize("verb", ["filter", "foreach", "reduce"])
async def test_callbacks_of_every_operator(verb: str) -> None:
    done = await ajob_test(await stored("user_flows.mapped", cbk="subprocess.getoutput", verb=verb))
    assert done.status == "failed"
    assert "from outside" in error_of(done)


@pytest.mark.parametrize(
    ("flow", "given"),
    [("mapped", {"cbk": "user_flows.doubled"}), ("deep", {"cbk": "user_flows.doubled"}), ("own", {}), ("own_task", {})],
)
async def test_what_is_marked_and_what_code_has_chosen_can_be_called(flow: str, given: dict[str, str]) -> None:
    done = await ajob_test(await stored(f"user_flows.{flow}", **given))
    assert done.status == "completed", error_of(done)


@pytest.mark.parametrize("how", ["create_task", "Task"])
@pytest.mark.parametrize(
    "name", ["subprocess.getoutput", "~os.system", "@os.system", "user_flows.plain", "user_flows.run"]
)
async def test_a_task_that_an_argument_names_obeys_the_same_rule(how: str, name: str) -> None:
    done = await ajob_test(await stored("user_flows.called", name=name, how=how))
    assert done.status == "failed"
    assert "from outside" in error_of(done)


@pytest.mark.parametrize(
    ("name", "how"), [("user_flows.daily", "create_task"), ("user_flows.daily", "Task"), ("plain", "function")]
)
async def test_a_task_that_code_has_chosen_runs(name: str, how: str) -> None:
    done = await ajob_test(await stored("user_flows.called", name=name, how=how))
    assert done.status == "completed", error_of(done)


@pytest.mark.parametrize("how", ["run", "register"])
async def test_a_job_that_an_argument_names_obeys_the_same_rule(how: str) -> None:
    for name, status in (("user_flows.plain", "failed"), ("user_flows.daily", "completed")):
        done = await ajob_test(await stored("user_flows.runs", name=name, how=how))
        assert done.status == status, error_of(done)


async def test_arguments_from_outside_for_what_was_registered_here() -> None:
    """Whoever registered it is trusted, and whoever gives it arguments is not."""
    await register_job("nightly", "user_flows.mapped", default_kwargs={"cbk": "user_flows.plain"})
    for given, status in (({"cbk": "subprocess.getoutput"}, "failed"), ({}, "completed")):
        async with already_trusted("user_flows.mapped", with_arguments=bool(given)):
            job = await run_job("nightly", None, given)
        done = await ajob_test(job)
        assert done.status == status, error_of(done)


async def test_without_the_setting_no_text_names_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    job = await stored("user_flows.mapped", cbk="user_flows.doubled")
    allow(monkeypatch, "")
    done = await ajob_test(job)
    assert done.status == "failed"
    assert "these may be run: none" in error_of(done)


async def test_jobs_of_ones_own_are_not_judged() -> None:
    done = await ajob_test(await run_job("x", "user_flows.mapped", {"cbk": "user_flows.plain"}))
    assert done.status == "completed", error_of(done)
    with arguments_from_outside(), pytest.raises(AaiclickError, match="from outside"):
        await run_job("x", "os.getcwd")

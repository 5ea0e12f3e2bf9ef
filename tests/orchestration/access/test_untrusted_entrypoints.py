"""What is named from outside is looked at in a child, never imported here, and looked at again where it runs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from aaiclick.config import reset_settings
from aaiclick.errors import EntrypointError, InputError
from aaiclick.orchestration.access import untrusted_entrypoints
from aaiclick.orchestration.access.untrusted_entrypoints import already_trusted, from_outside, look_at
from aaiclick.orchestration.jobs import get_job_result
from aaiclick.orchestration.launchers.debug import ajob_test
from aaiclick.orchestration.registered_jobs import run_job
from aaiclick.orchestration.tasks import get_task
from tests.support.annotated import Colour, Order
from tests.support.bodies import is_alive, until
from tests.support.front_door import local

__all__ = ["local"]

MODULE = """
import sys, {imports}
from aaiclick.orchestration import task, job
print("this goes nowhere")
{mark}
def load(a, b=1): return a + b
"""


@pytest.fixture(autouse=True)
def allowed(local: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of the user's, which may be run from."""
    monkeypatch.setenv("AAICLICK_ENTRYPOINT_PREFIXES", "user_flows")
    monkeypatch.syspath_prepend(str(tmp_path / "app"))
    (tmp_path / "app").mkdir()
    untrusted_entrypoints._known.clear()
    reset_settings()
    yield tmp_path / "app"
    sys.modules.pop("user_flows", None)
    reset_settings()


def write(place: Path, *, mark: str = "@task", imports: str = "os") -> None:
    (place / "user_flows.py").write_text(MODULE.format(mark=mark, imports=imports))


async def submit(**kwargs: object) -> int:
    async with from_outside("user_flows.load") as entrypoint:
        job = await run_job("x", entrypoint, kwargs)
    return job.tasks[0].id


async def test_the_users_module_is_not_imported_here(allowed: Path) -> None:
    write(allowed)
    task = await get_task(await submit(a=1))
    assert task is not None
    assert (task.entrypoint, task.name) == ("@user_flows.load", "load")
    assert "user_flows" not in sys.modules


async def test_what_it_does_not_take_is_refused_by_its_signature(allowed: Path) -> None:
    write(allowed)
    with pytest.raises(EntrypointError, match="missing: 'a'"):
        await submit(b=1)
    with pytest.raises(EntrypointError, match="unexpected: 'c'"):
        await submit(a=1, c=2)


async def test_only_what_is_marked_and_allowed(allowed: Path) -> None:
    write(allowed, mark="")
    with pytest.raises(EntrypointError, match="only functions marked"):
        await submit(a=1)
    with pytest.raises(EntrypointError, match="these may be run: user_flows"):
        async with from_outside("os.system"):
            pass


async def test_the_worker_looks_again(allowed: Path) -> None:
    """Between the submit and the run the mark was taken away."""
    write(allowed)
    async with from_outside("user_flows.load") as entrypoint:
        job = await run_job("x", entrypoint, {"a": 1})
    write(allowed, mark="")
    done = await ajob_test(job)
    assert done.status == "failed"
    task = await get_task(done.tasks[0].id)
    assert task is not None
    assert "only functions marked" in (task.error or "")
    assert task.attempt <= 1  # not tried again


async def test_the_child_takes_nothing_of_the_current_directory_for_pythons_own(
    allowed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(allowed)
    for place in (tmp_path / "here", allowed):
        place.mkdir(exist_ok=True)
        for name in ("json", "typing", "inspect", "sitecustomize"):
            (place / f"{name}.py").write_text("raise SystemExit('hidden')\n")
    monkeypatch.chdir(tmp_path / "here")
    found = await look_at("@user_flows.load")
    assert found is not None
    assert found["kind"] == "task"


async def test_an_import_that_hangs_is_killed(allowed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (allowed / "user_flows.py").write_text("import time\ntime.sleep(1000)\n")
    monkeypatch.setattr(untrusted_entrypoints, "LOOK_S_MAX", 1.0)
    with pytest.raises(EntrypointError, match="took longer than 1 s"):
        await look_at("user_flows.load")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import os\nos._exit(0)\n", "died"),
        ("import sys\nsys.exit(1)\n", "sys.exit"),
        ("raise BaseException('no')\n", "no"),
        ("1 +\n", "SyntaxError|syntax"),
        ("import no_such_thing_anywhere\n", "no_such_thing_anywhere"),
    ],
)
async def test_an_import_that_ends_badly(allowed: Path, text: str, said: str) -> None:
    (allowed / "user_flows.py").write_text(text)
    with pytest.raises(EntrypointError, match=said):
        await look_at("user_flows.load")


FORKS = """
import os, time
if (copy := os.fork()) == 0:
    time.sleep(1000)
with open(os.path.dirname(__file__) + "/copy", "w") as file:
    file.write(str(copy))
from aaiclick.orchestration import task
@task
def load(a): ...
"""


async def test_an_import_that_forks_is_not_waited_for_and_its_copy_is_killed(allowed: Path) -> None:
    (allowed / "user_flows.py").write_text(FORKS)
    found = await look_at("user_flows.load")  # the copy holds the pipe of the answer: the end of that never comes
    assert found is not None
    assert found["kind"] == "task"
    copy = int((allowed / "copy").read_text())
    await until(lambda: not is_alive(copy))


async def test_an_import_that_prints_without_end_is_heard_by_nobody(allowed: Path) -> None:
    loud = "import os, sys\nfor _ in range(300): os.write(1, b'{}' * 50_000); sys.stderr.write('x' * 100_000)\n"
    (allowed / "user_flows.py").write_text(loud + MODULE.format(mark="@task", imports="os"))
    found = await look_at("user_flows.load")
    assert found is not None
    assert [each["name"] for each in found["parameters"]] == ["a", "b"]


async def test_what_was_found_is_known_for_a_while(allowed: Path) -> None:
    write(allowed)
    found = await look_at("user_flows.load")
    (allowed / "user_flows.py").unlink()
    assert await look_at("user_flows.load") is found


async def test_who_asks_while_somebody_looks_gets_the_same_answer(allowed: Path) -> None:
    """Also when the one who asked first has left."""
    counted = "import pathlib\npathlib.Path(__file__).with_suffix('.log').open('a').write('x')\n"
    (allowed / "user_flows.py").write_text(counted + MODULE.format(mark="@task", imports="os"))
    first, *others = [asyncio.create_task(look_at("user_flows.load")) for _ in range(5)]
    await asyncio.sleep(0)
    first.cancel()
    found = await asyncio.gather(*others)
    assert all(each is found[0] for each in found)
    assert (allowed / "user_flows.log").read_text() == "x"
    assert not untrusted_entrypoints._looks


async def test_who_asks_while_somebody_looks_is_refused_alike(allowed: Path) -> None:
    said = await asyncio.gather(*(look_at("user_flows.load") for _ in range(3)), return_exceptions=True)
    assert [type(each) for each in said] == [EntrypointError] * 3
    assert not untrusted_entrypoints._looks


async def test_what_is_stored_already_needs_no_mark(allowed: Path) -> None:
    write(allowed, mark="")
    async with already_trusted("user_flows.load"):
        job = await run_job("x", "user_flows.load", {"a": 1})
    assert job.tasks[0].entrypoint == "user_flows.load"
    assert "user_flows" not in sys.modules


@pytest.mark.parametrize("name", ["", "-c", "--help", "a b", "a;b", "a.b\n", "x" * 5 + "..y"])
async def test_a_name_that_is_none_starts_nothing(name: str) -> None:
    with pytest.raises(EntrypointError, match="not a dotted name"):
        await look_at(name)


async def test_a_name_that_no_command_line_takes() -> None:
    with pytest.raises(EntrypointError, match="it has 500000 characters, at most 500 are allowed"):
        await look_at("x" * 500_000)


ANNOTATED = "tests.support.annotated"


@pytest.fixture
def annotated(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AAICLICK_ENTRYPOINT_PREFIXES", ANNOTATED)
    reset_settings()
    yield
    reset_settings()


async def test_json_arrives_as_the_annotations_promise(local: Path, annotated: None) -> None:
    order = {"number": 7, "colour": "blue"}
    async with from_outside(f"{ANNOTATED}.shipped") as entrypoint:
        given = await untrusted_entrypoints.converted_outside(entrypoint, {"order": order, "day": "2026-02-03"})
        made = await run_job("ship", entrypoint, given)
    done = await ajob_test(made)
    assert done.status == "completed", done.error
    result = await get_job_result(done.id)
    assert result["order"] == Order(7, Colour.BLUE)
    assert result["day"] == date(2026, 2, 3)


@pytest.mark.parametrize(
    ("kwargs", "said"),
    [
        ({"count": "1"}, r"kwargs\.count.*expected int, got str"),
        ({"order": {"number": "x"}}, r"kwargs\.order\.number.*expected int, got str"),
        ({"day": "never", "count": 1}, r"kwargs\.day"),
    ],
)
async def test_what_is_not_as_promised_is_refused_at_submit(
    local: Path, annotated: None, kwargs: dict[str, object], said: str
) -> None:
    async with from_outside(f"{ANNOTATED}.all_kinds") as entrypoint:
        with pytest.raises(InputError, match=said):
            await untrusted_entrypoints.converted_outside(entrypoint, kwargs)

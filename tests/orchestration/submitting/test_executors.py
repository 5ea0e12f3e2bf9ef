"""Which executors there are: ours, and those of distributions that are installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aaiclick.config import reset_settings
from aaiclick.errors import EntrypointError
from aaiclick.orchestration import create_task, task
from aaiclick.orchestration.submitting import executors
from aaiclick.orchestration.submitting.entrypoints import resolve
from aaiclick.orchestration.submitting.executors import body_of, check_offered, executor_types
from tests.support import plug_in


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(plug_in.install(tmp_path)))
    executors._plug_ins.cache_clear()
    yield
    monkeypatch.undo()
    executors._plug_ins.cache_clear()
    reset_settings()


def test_plug_ins_are_found_and_replace_none_of_ours() -> None:
    assert executor_types() == ("python", "missing", "number", "rest", "sample", "shell")
    assert body_of("sample").__module__ == "sample_plug_in"
    assert body_of("shell").__module__ == "aaiclick.executors.shell_command"
    assert resolve("sample:") is body_of("sample")


def test_a_worker_offers_what_its_settings_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AAICLICK_EXECUTORS", "python, rest, elsewhere")
    reset_settings()
    assert executor_types() == ("python", "rest")
    check_offered("rest", "rest:")
    with pytest.raises(EntrypointError, match="AAICLICK_EXECUTORS"):
        check_offered("shell", "shell:")


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("shel", "no executor of that name is installed. Did you mean shell"),
        ("number", "is a int, and an executor is a function. Mend or remove sample-plug-in"),
        ("missing", "loading sample_plug_in_that_is_gone:run raised ModuleNotFoundError"),
    ],
)
def test_one_that_cannot_be_used_is_refused_with_its_name(name: str, cause: str) -> None:
    with pytest.raises(EntrypointError, match=cause):
        body_of(name)


def test_a_task_names_its_executor_by_decorator_option_or_argument() -> None:
    @task(executor="shell")
    def command(place: str) -> list[str]:
        return ["ls", place]

    assert command.options(executor="rest_executor").executor == "rest"
    by_name = create_task("tests.orchestration.sample_flows.plain", executor="shell_executor")
    assert (by_name.entrypoint, by_name.executor) == ("shell:tests.orchestration.sample_flows.plain", "shell")

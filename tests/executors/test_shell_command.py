"""Commands as bodies: their options, their exit codes, and what their result is made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aaiclick.errors import CommandFailed, CommandFailedForGood, InputError, TaskSkipped
from aaiclick.executors.shell_command import run, shell
from aaiclick.orchestration import Secret, create_task


async def test_a_list_is_run_as_it_is_and_a_text_by_a_shell() -> None:
    assert await run(["echo", "$HOME", 1, 2.5, Path("/x")]) == "$HOME 1 2.5 /x"
    assert await run("echo first; echo second") == "second"


async def test_exit_codes_mean_what_they_are_told_to() -> None:
    assert await run("exit 3", success_codes=[0, 3]) == ""
    with pytest.raises(CommandFailed, match=r"exit 3.* ended with exit code 3\. Its output") as failed:
        await run("exit 3")
    assert type(failed.value) is CommandFailed
    assert failed.value.code == 3
    with pytest.raises(CommandFailedForGood):
        await run("exit 3", retry_codes=[75])
    with pytest.raises(CommandFailed) as again:
        await run("exit 75", retry_codes=[75])
    assert type(again.value) is CommandFailed
    with pytest.raises(TaskSkipped, match="exit code 99"):
        await run("exit 99", skip_codes=[99])
    with pytest.raises(CommandFailed, match="was ended by SIGKILL"):
        await run("kill -9 $$")
    with pytest.raises(CommandFailed, match="cannot be started: No such file"):
        await run(["no-such-program"])


async def test_its_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FROM_WORKER", "yes")
    assert await run('echo "$FROM_WORKER $MORE"', env={"MORE": 1}) == "yes 1"
    assert await run('echo "[$FROM_WORKER]"', inherit_env=False) == "[]"
    assert await run(["pwd"], cwd=str(tmp_path)) == str(tmp_path)
    assert await run(["cat"], stdin="größe") == "größe"
    assert await run(["cat"]) == ""  # it waits for nobody


async def test_the_result_is_what_was_chosen(tmp_path: Path) -> None:
    text = 'echo "[1,"; echo "2]"'
    assert await run(text, result="output") == "[1,\n2]\n"
    assert await run(text, result="json") == [1, 2]
    assert await run(text, result="last_line") == "2]"
    assert await run(text, result="none") is None
    assert await run("echo noise; echo '{\"a\": 1}'", result="json_line") == {"a": 1}
    assert await run("echo noise; echo text > out", cwd=str(tmp_path), result_file="out") == "text\n"
    assert await run("echo '[1]' > out", cwd=str(tmp_path), result_file="out", result="json") == [1]
    with pytest.raises(CommandFailed, match=r"is no JSON"):
        await run(text, result="json_line")
    with pytest.raises(CommandFailed, match="left no file nowhere"):
        await run("true", cwd=str(tmp_path), result_file="nowhere")


def test_a_task_of_a_command_is_made_like_any_other() -> None:
    first = create_task("tests.orchestration.sample_flows.plain")
    made = shell(["grep", "-c", first], name="count", max_retries=3, env={"TOKEN": Secret("env:X")})
    assert (made.name, made.entrypoint, made.executor, made.max_retries) == ("count", "shell:", "shell", 3)
    assert [edge.previous for edge in made._in] == [first]
    assert shell("ls -l | wc").name == "ls"
    assert shell(["/bin/ls"]).name == "ls"
    by_name = create_task(executor="shell", kwargs={"argv": ["ls"]})
    assert (by_name.entrypoint, by_name.name) == ("shell:", "shell")


@pytest.mark.parametrize(
    ("argv", "options"),
    [
        ([], {}),
        ("", {}),
        (7, {}),
        (["ls"], {"result": "all"}),
        (["ls"], {"success_codes": 0}),
        (["ls"], {"skip_codes": ["99"]}),
        (["ls"], {"success_codes": None}),
        (["ls"], {"skip_codes": None}),
        (["ls"], {"grace_s": -1}),
        (["ls"], {"grace_s": float("nan")}),
        (["ls"], {"grace_s": "1"}),
        (["ls"], {"memory_mb": 0}),
        (["ls"], {"cpu_s": 1.5}),
        (["ls"], {"timeout": 3}),
    ],
)
def test_wrong_options_are_refused_at_once(argv: Any, options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        shell(argv, **options)


async def test_words_that_are_none_are_refused() -> None:
    for word in (None, True, ["x"], "a\x00b"):
        with pytest.raises(InputError, match="argv"):
            await run(["echo", word])

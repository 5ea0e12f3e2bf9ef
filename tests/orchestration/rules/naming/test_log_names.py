"""The names of logs, there and back."""

from __future__ import annotations

import pytest

from aaiclick.orchestration.rules.naming.log_names import log_name, task_of_log


def test_there_and_back() -> None:
    assert (log_name(5), log_name(5, 2)) == ("5.log", "5.2.log")
    assert task_of_log(log_name(2**63 - 1, 12)) == task_of_log(log_name(2**63 - 1)) == 2**63 - 1


@pytest.mark.parametrize(
    "name",
    [
        "",
        "x.log",
        "0.log",
        "-1.log",
        "1.x.log",
        "1.2.3.log",
        "1.log.gz",
        "../1.log",
        "1.log\n",
        "\u0661.log",
        ".1.1.log.new",
    ],
)
def test_no_other_name_is_one(name: str) -> None:
    assert task_of_log(name) is None

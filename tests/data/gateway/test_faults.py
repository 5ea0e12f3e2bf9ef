"""Errors as ClickHouse tells them."""

from __future__ import annotations

import pytest

from aaiclick.data.gateway.faults import Fault, as_fault, fault


@pytest.mark.parametrize(
    ("code", "status"), [(62, 400), (60, 404), (516, 403), (159, 408), (241, 500), (202, 503), (48, 501), (373, 500)]
)
def test_a_code_has_the_status_that_clickhouse_gives_it(code: int, status: int) -> None:
    assert fault(code, "NAME", "Words.").status == status


def test_what_python_wrote_around_an_error_is_left_out() -> None:
    found = as_fault(RuntimeError("Streaming query failed: Code: 395. DB::Exception: Words. Code: 1. (NAME)\n"))
    assert (found.code, str(found)) == (395, "Code: 395. DB::Exception: Words. Code: 1. (NAME)")


def test_an_error_without_a_code_gets_one() -> None:
    found = as_fault(RuntimeError("No active streaming query"))
    assert (found.code, str(found)) == (1002, "Code: 1002. RuntimeError: No active streaming query")


def test_a_fault_stays_what_it_is() -> None:
    found = Fault(1, "Code: 1.")
    assert as_fault(found) is found

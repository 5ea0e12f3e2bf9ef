"""Parts are worth a task each, and few more than the slots."""

from __future__ import annotations

import pytest

from aaiclick.orchestration.rules.part_sizes import PART_BYTES_MAX, PARTS_MAX, part_rows


@pytest.mark.parametrize(
    ("count", "slots", "rows"),
    [
        (0, 1, 100_000),
        (1, 1, 100_000),
        (100_000, 8, 100_000),
        (300_000, 1, 300_000),
        (1_000_000, 0, 1_000_000),
        (1_000_000, 1, 1_000_000),
        (1_000_001, 1, 1_000_000),
        (300_001, 2, 100_000),
        (500_001, 2, 125_001),
        (1_000_000, 2, 250_000),
        (1_000_000, 64, 100_000),
        (10_000_000, 1, 1_000_000),
        (10_000_000, 8, 625_000),
        (10_000_000_000, 8, 1_000_000),
    ],
)
def test_every_slot_gets_two_parts_and_an_only_slot_gets_one(count: int, slots: int, rows: int) -> None:
    assert part_rows(count, slots) == rows


def test_however_many_slots_there_are_parts_are_not_many() -> None:
    count = 40_000_000
    assert -(-count // part_rows(count, 100_000)) == PARTS_MAX


@pytest.mark.parametrize(
    ("row_bytes", "rows"), [(16, 1_000_000), (1024, 262_144), (1024 * 1024, 256), (PART_BYTES_MAX, 2)]
)
def test_wide_rows_make_smaller_parts(row_bytes: int, rows: int) -> None:
    assert part_rows(1_000_000, 1, 1_000_000 * row_bytes) == rows

"""How many rows of an operator are a task, where nobody says."""

from __future__ import annotations

PARTS_A_SLOT = 2
"""So that nobody waits long for the slowest."""

PARTS_MAX = 256
"""However many slots there are; more rows than these hold still make more parts."""

PART_ROWS = 100_000
"""Rows of a part at least: a task costs as much as some fifty thousand calls of a small function."""

PART_ROWS_MIN = 2
"""However wide they are: the layers of a reduction become smaller."""

PART_ROWS_MAX = 1_000_000
PART_BYTES_MAX = 256 * 1024 * 1024
"""A part is in the memory of its worker, so wide rows make smaller ones."""


def part_rows(count: int, slots: int, size_bytes: int = 0) -> int:
    """The rows of a part, of so many that take so much: every slot gets some parts, if they are worth a task each."""
    parts = min(PARTS_A_SLOT * max(slots, 1), PARTS_MAX)
    wanted = min(max(PART_ROWS, -(-count // parts)), PART_ROWS_MAX)
    return max(min(wanted, PART_BYTES_MAX * count // size_bytes), PART_ROWS_MIN) if size_bytes else wanted

"""The default number of rows per task of an operator such as `map`."""

from __future__ import annotations

PARTS_A_SLOT = 2
"""Parts per slot: more than one, so that the slowest part does not delay the end for long."""

PARTS_MAX = 256
"""Parts at most, however many slots there are; exceeded only if they would be larger than the limits below."""

PART_ROWS = 100_000
"""Rows of a part at least, unless they exceed PART_BYTES_MAX.

The overhead of a task equals some fifty thousand calls of a small function.
"""

PART_ROWS_MIN = 2
"""Rows of a part at least, even of very wide rows: with fewer, the layers of a reduction would not shrink."""

PART_ROWS_MAX = 1_000_000
PART_BYTES_MAX = 256 * 1024 * 1024
"""Bytes of a part at most, as its worker holds it in memory: wide rows make parts of fewer rows."""


def part_rows(count: int, slots: int, size_bytes: int = 0) -> int:
    """Return the rows per part for `count` rows of `size_bytes` together (0: unknown).

    Every slot gets PARTS_A_SLOT parts, unless these would be too small to be worth a task. A single slot gets one: it
    would work on several one after the other.
    """
    parts = min(PARTS_A_SLOT * slots, PARTS_MAX) if slots > 1 else 1
    wanted = min(max(PART_ROWS, -(-count // parts)), PART_ROWS_MAX)
    return max(min(wanted, PART_BYTES_MAX * count // size_bytes), PART_ROWS_MIN) if size_bytes else wanted

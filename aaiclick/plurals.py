"""Numbers of things, in words."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number of things: no jobs, 1 job, 2 jobs; a plural that does not end in a bare s is given."""
    return f"{number or 'no'} {noun if number == 1 else plural or f'{noun}s'}"

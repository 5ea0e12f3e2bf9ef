"""The newest events, kept once for all who listen."""

from __future__ import annotations

import pytest

from aaiclick.server.streaming import event_window as module
from aaiclick.server.streaming.event_window import EventMessage, EventPiece, EventWindow


def piece(after: int, *ids: int, cursor: int | None = None) -> EventPiece:
    """Events of two jobs in turns: even ids are of job 0, odd ones of job 1."""
    told = [EventMessage(each, each % 2, f"<{each}>".encode()) for each in ids]
    return EventPiece(after, ids[-1] if cursor is None else cursor, told)


@pytest.mark.parametrize(
    ("after", "job_id", "part"),
    [
        (0, None, b"<1><2><3>"),
        (1, None, b"<2><3>"),  # heard already: not again
        (0, 1, b"<1><3>"),
        (1, 1, b"<3>"),
        (0, 0, b"<2>id: 3\n\n"),  # the last is another job's: a client that comes again need not hear of it
        (2, 0, b"id: 3\n\n"),
    ],
)
def test_each_hears_what_is_new_to_him_and_of_his_job(after: int, job_id: int | None, part: bytes) -> None:
    assert piece(0, 1, 2, 3).part(after, job_id) == part


def test_the_end_of_a_piece_may_be_behind_its_events() -> None:
    assert piece(0, 1, cursor=5).part(0, None) == b"<1>id: 5\n\n"
    assert EventPiece(0, 5, []).part(0, None) == b"id: 5\n\n"


def test_who_hears_all_gets_the_same_bytes_as_the_others() -> None:
    one = piece(0, 1, 2)
    assert one.part(0, None) is one.part(0, None)


def test_pieces_join() -> None:
    window = EventWindow(10)
    first, second = piece(10, 11, 12), piece(12, 13)
    window.add(first)
    window.add(second)
    assert (window.start, window.end) == (10, 13)
    assert [window.behind(place) for place in (10, 11, 12, 13, 20)] == [first, first, second, None, None]
    with pytest.raises(AssertionError):
        window.add(piece(12, 13))


@pytest.mark.parametrize("limit", [("PIECES_MAX", 2), ("BYTES_MAX", 2 * len("<11><12>"))])
def test_it_keeps_so_many_and_no_more(limit: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, *limit)
    window = EventWindow(10)
    for place in range(10, 20):
        window.add(piece(place, place + 1))
    assert (window.start, window.end) == (18, 20)
    assert window.behind(18).text == b"<19>"  # type: ignore[union-attr]


def test_a_piece_that_is_too_large_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BYTES_MAX", 3)
    window = EventWindow(0)
    window.add(piece(0, 1, 2))
    assert (window.start, window.end, window.behind(2)) == (2, 2, None)

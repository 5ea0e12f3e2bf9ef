"""How many connections there are."""

from __future__ import annotations

import resource

import pytest

from aaiclick.server.transport.connection_counts import Crowd, room


class Somebody:
    """A connection that notes its end."""

    def __init__(self, crowd: Crowd) -> None:
        self.gone = False
        crowd.enter(self)

    def hang_up(self) -> None:
        self.gone = True


def test_of_strangers_the_first_goes_first() -> None:
    crowd = Crowd(8)
    there = [Somebody(crowd) for _ in range(6)]
    assert [each.gone for each in there] == [True, True, False, False, False, False]
    assert len(crowd.there) == len(crowd.strangers) == 4


def test_who_is_known_stays_where_strangers_have_to_go() -> None:
    crowd = Crowd(8)
    known = [Somebody(crowd) for _ in range(4)]
    for each in known:
        crowd.know(each, True)
        crowd.wait(each)
    strangers = [Somebody(crowd) for _ in range(6)]
    assert not any(each.gone for each in known)
    assert [each.gone for each in strangers] == [True, True, False, False, False, False]


def test_who_works_is_not_sent_away() -> None:
    crowd = Crowd(4)
    busy = [Somebody(crowd) for _ in range(2)]
    for each in busy:
        crowd.work(each)
    assert Somebody(crowd).gone  # there is no room among strangers
    for each in busy:
        crowd.know(each, True)
    idle = [Somebody(crowd) for _ in range(2)]
    for each in idle:
        crowd.know(each, True)
        crowd.wait(each)
    assert not Somebody(crowd).gone  # who is known and idle makes room
    assert [each.gone for each in (*busy, *idle)] == [False, False, True, False]


def test_a_token_that_counts_no_more_makes_a_stranger() -> None:
    crowd = Crowd(4)
    one = Somebody(crowd)
    crowd.know(one, True)
    assert not crowd.strangers
    crowd.know(one, False)
    assert crowd.strangers == {one}
    crowd.leave(one)
    crowd.know(one, False)
    crowd.wait(one)
    assert not crowd.there | crowd.strangers


@pytest.mark.parametrize(("soft", "most"), [(256, 156), (50, 16), (100_000, 1000), (resource.RLIM_INFINITY, 1000)])
def test_room_is_what_the_machine_allows(monkeypatch: pytest.MonkeyPatch, soft: int, most: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, soft))
    assert room() == most

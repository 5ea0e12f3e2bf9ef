"""Grants: no window is given twice, whatever clocks and crashes do."""

import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from aaiclick.id_grants import ALLOTTED_MACHINE_IDS, RANDOM_MACHINE_IDS, Grant, LocalSlots, OfferedGrants, lend_slot
from aaiclick.ids import EPOCH_MS, IdMaker, id_time
from tests.support.ids import HOUR_S, NOON, NOON_MS, HandClock, assert_rising, machine_of, slots_maker


def test_every_live_holder_has_a_slot_of_its_own(tmp_path: Path):
    clock = HandClock()
    made: list[int] = []
    makers = []
    for _ in range(20):
        makers.append(slots_maker(tmp_path / "slots", clock))
        made.append(makers[-1].one())
        clock.pass_by(60)  # what the holders before stored has passed: only their locks keep the slots
    assert len({machine_of(each) for each in made}) == 20


def test_slots_are_for_their_owner_only(tmp_path: Path):
    slots_maker(tmp_path / "slots", HandClock()).one()
    (file,) = (tmp_path / "slots").iterdir()
    assert (tmp_path / "slots").stat().st_mode & 0o777 == 0o700
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_next_holder_of_a_slot_never_starts_below_the_last_id(tmp_path: Path):
    clock = HandClock()
    made: list[int] = []
    for _ in range(5):
        maker = slots_maker(tmp_path / "slots", clock, range(7, 8))
        made += maker.many(10_000)
        maker.source.forget()
        clock.wall_s -= HOUR_S
    assert {machine_of(each) for each in made} == {7}
    assert_rising(made)


@pytest.mark.parametrize("lifetime_s", [0.0, 0.12, 5.0])
def test_processes_that_follow_each_other_on_one_slot_do_not_run_ahead(tmp_path: Path, lifetime_s: float):
    """Each began after what the one before had reserved: the twentieth was seconds ahead."""
    clock = HandClock()
    ahead = []
    for _ in range(20):
        maker = slots_maker(tmp_path / "slots", clock, range(7, 8))
        ahead.append(id_time(maker.one()).timestamp() - clock.wall())
        for _ in range(10):
            clock.pass_by(lifetime_s / 10)
            maker.one()
        maker.source.forget()  # as when it is killed
        clock.pass_by(0.1)  # the next one starts
    assert max(ahead) < 1


def test_a_free_slot_whose_time_has_passed_is_preferred(tmp_path: Path):
    ahead = HandClock(NOON + timedelta(days=400))
    slots_maker(tmp_path / "slots", ahead, range(3)).one()
    assert id_time(slots_maker(tmp_path / "slots", HandClock(), range(3)).one()) == NOON


def test_without_a_free_slot_a_random_machine_id_serves_until_there_is_one(tmp_path: Path):
    clock = HandClock()
    first, second = (slots_maker(tmp_path / "slots", clock, range(1)) for _ in range(2))
    first.one()
    assert machine_of(second.one()) in RANDOM_MACHINE_IDS
    first.source.forget()
    clock.pass_by(60)
    assert machine_of(second.one()) == 0


@pytest.mark.parametrize("content", [b"garbage", b"-0000000000000000001\n", b"1" * 64, "\uff11\uff12".encode()])
def test_a_damaged_slot_is_left_alone(tmp_path: Path, content: bytes):
    (tmp_path / "slots").mkdir()
    (tmp_path / "slots" / "0000").write_bytes(content)
    assert machine_of(slots_maker(tmp_path / "slots", HandClock(), range(2)).one()) == 1
    assert (tmp_path / "slots" / "0000").read_bytes() == content


def test_a_link_planted_as_a_slot_is_not_followed(tmp_path: Path):
    (tmp_path / "slots").mkdir()
    (tmp_path / "victim").write_text("")
    (tmp_path / "slots" / "0000").symlink_to(tmp_path / "victim")
    assert machine_of(slots_maker(tmp_path / "slots", HandClock(), range(1)).one()) in RANDOM_MACHINE_IDS
    assert (tmp_path / "victim").read_text() == ""


def test_a_place_where_slots_cannot_be_kept_leaves_random_machine_ids(tmp_path: Path):
    assert machine_of(slots_maker(tmp_path / "missing" / "slots", HandClock()).one()) in RANDOM_MACHINE_IDS


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("make"), st.integers(0, 2), st.integers(1, 9000)),
        st.tuples(st.just("pass"), st.integers(0, 2), st.sampled_from([0.0005, 0.4, 5, 100])),
        st.tuples(st.just("set"), st.integers(0, 2), st.integers(-7200, 7200)),
        st.tuples(st.just("crash"), st.integers(0, 2), st.just(0)),
    ),
    max_size=25,
)


@given(STEPS)
@examples(max_examples=100, deadline=None)
def test_no_history_of_clocks_and_crashes_repeats_an_id(steps):
    with tempfile.TemporaryDirectory() as place:
        clocks = [HandClock() for _ in range(3)]
        makers = [slots_maker(Path(place) / "slots", clock, range(2)) for clock in clocks]
        made: list[int] = []
        for what, who, amount in steps:
            if what == "make":
                made += makers[who].many(amount)
            elif what == "pass":
                clocks[who].pass_by(amount)
            elif what == "set":
                clocks[who].wall_s += amount
            else:
                makers[who].source.forget()  # as the system does for the dead
                makers[who] = slots_maker(Path(place) / "slots", clocks[who], range(2))
        for maker in makers:
            maker.source.forget()
    granted = [each for each in made if machine_of(each) in ALLOTTED_MACHINE_IDS]
    assert len(set(granted)) == len(granted)


# ---------------------------------------------------------------- grants of a server


class Table:
    """What the table of a server does: hand out windows, each stored before it is used."""

    def __init__(self, machine_ids: range, window_ms: int = 60_000) -> None:
        self.high_water_ms = dict.fromkeys(machine_ids, 0)
        self.window_ms = window_ms

    def grant(self, now_ms: int) -> Grant:
        machine_id = min(self.high_water_ms, key=lambda each: self.high_water_ms[each])
        from_ms = max(self.high_water_ms[machine_id], now_ms)
        self.high_water_ms[machine_id] = from_ms + self.window_ms
        return Grant(machine_id, from_ms, from_ms + self.window_ms)


def test_hosts_with_wrong_clocks_share_a_table_without_sharing_an_id():
    table = Table(range(3))
    made: list[int] = []
    for minute in range(20):
        for wrong_by in (-2 * HOUR_S, 0, 1, 2 * HOUR_S):
            source, clock = OfferedGrants(), HandClock(NOON + timedelta(seconds=wrong_by))
            source.offer(table.grant(NOON_MS + minute * 100))
            maker = IdMaker(source, clock=clock)
            maker.tell_time(NOON_MS + minute * 100, clock.monotonic())
            made += maker.many(2000)
    assert {machine_of(each) for each in made} == {0, 1, 2}
    assert len(set(made)) == len(made) == 20 * 4 * 2000


def test_a_granted_id_has_the_time_of_the_server_not_of_the_host():
    source, clock = OfferedGrants(), HandClock(NOON - timedelta(hours=2))
    source.offer(Table(range(1)).grant(NOON_MS))
    maker = IdMaker(source, clock=clock)
    maker.tell_time(NOON_MS, clock.monotonic())
    assert id_time(maker.one()) == NOON
    clock.pass_by(1)
    assert id_time(maker.one()) == NOON + timedelta(seconds=1)


@pytest.mark.parametrize("wrong_by", [-2 * HOUR_S, 0, 2 * HOUR_S])
def test_who_is_idle_for_long_makes_ids_of_now(wrong_by):
    """A server takes window after window, and the first request comes days later."""
    source, clock, table = OfferedGrants(), HandClock(NOON + timedelta(seconds=wrong_by)), Table(range(9))
    maker = IdMaker(source, clock=clock)
    maker.tell_time(NOON_MS, clock.monotonic())
    for _ in range(1000):
        source.offer(table.grant(NOON_MS + int(clock.monotonic() * 1000)))
        clock.pass_by(59)
    made = maker.one()
    assert id_time(made) == NOON + timedelta(seconds=59_000)
    assert machine_of(made) in ALLOTTED_MACHINE_IDS
    assert len(source._grants) <= 3


def test_who_is_idle_beyond_its_last_window_makes_ids_of_now():
    source, clock = OfferedGrants(), HandClock(NOON + timedelta(hours=2))
    maker = IdMaker(source, clock=clock)
    maker.tell_time(NOON_MS, clock.monotonic())
    source.offer(Table(range(1)).grant(NOON_MS))
    clock.pass_by(HOUR_S)
    assert id_time(maker.one()) == NOON + timedelta(hours=1)


def test_a_state_whose_clock_goes_back_repeats_no_id_and_stops_nobody():
    source, clock, table = OfferedGrants(), HandClock(), Table(range(4))
    maker = IdMaker(source, clock=clock, pause=clock.pass_by)
    maker.tell_time(NOON_MS, clock.monotonic())
    source.offer(table.grant(NOON_MS))
    made = maker.many(5000)
    maker.tell_time(NOON_MS - HOUR_S * 1000, clock.monotonic())
    made += maker.many(20_000)
    assert_rising(made)
    assert clock.monotonic() == 0
    clock.pass_by(HOUR_S)
    assert id_time(maker.one()) - NOON <= timedelta(milliseconds=10)


def test_a_machine_that_slept_goes_by_the_time_that_it_is_told_then():
    clock = HandClock()
    maker = IdMaker(OfferedGrants(), clock=clock)
    maker.tell_time(NOON_MS, clock.monotonic())
    maker.one()
    maker.tell_time(NOON_MS + HOUR_S * 1000, clock.monotonic())  # the monotonic clock slept too
    assert id_time(maker.one()) == NOON + timedelta(hours=1)


def test_a_time_that_was_long_on_its_way_is_not_believed():
    clock = HandClock()
    maker = IdMaker(OfferedGrants(), clock=clock)
    maker.tell_time(NOON_MS, clock.monotonic())
    clock.pass_by(10)
    maker.tell_time(NOON_MS, asked_at_s=0.0)
    assert id_time(maker.one()) == NOON + timedelta(seconds=10)


def test_before_and_after_a_grant_random_machine_ids_serve():
    source, clock = OfferedGrants(), HandClock()
    maker = IdMaker(source, clock=clock)
    made = [maker.one()]
    source.offer(Table(range(5, 6)).grant(NOON_MS))
    maker.ask_again()
    made.append(maker.one())
    clock.pass_by(61)
    made.append(maker.one())
    assert [machine_of(each) in RANDOM_MACHINE_IDS for each in made] == [True, False, True]
    assert_rising(made)


def test_the_next_grant_follows_without_a_gap():
    source, clock, table = OfferedGrants(), HandClock(), Table(range(1))
    maker = IdMaker(source, clock=clock)
    made: list[int] = []
    for _ in range(10):
        source.offer(table.grant(int(clock.wall() * 1000)))
        for _ in range(6):
            made.append(maker.one())
            clock.pass_by(10)
    assert {machine_of(each) for each in made} == {0}
    assert_rising(made)


def test_a_source_that_repeats_an_old_window_is_not_believed():
    class Stuck:
        def grant(self, at_ms: int) -> Grant:
            return Grant(1, EPOCH_MS, EPOCH_MS + 1)

        def forget(self) -> None: ...

    assert machine_of(IdMaker(Stuck(), clock=HandClock()).one()) in RANDOM_MACHINE_IDS


def test_few_ids_made_before_a_grant_meet_only_if_all_22_bits_do():
    """Two processes with the same random machine id keep apart by where their sequence starts."""
    clock = HandClock()
    starts = {IdMaker(OfferedGrants(), clock=clock).one() & 0x3FFFFF for _ in range(200)}
    assert len(starts) > 190
    assert all(start & 4095 < 2048 for start in starts)


def test_a_window_ends_before_its_last_millisecond():
    source = OfferedGrants()
    source.offer(Grant(5, NOON_MS, NOON_MS + 2))
    made = IdMaker(source, clock=HandClock()).many(4096 * 2 + 1)
    assert {machine_of(each) for each in made[:-1]} == {5}
    assert machine_of(made[-1]) in RANDOM_MACHINE_IDS


def test_a_window_that_is_lent_is_given_to_nobody_else(tmp_path: Path):
    """To a process elsewhere, which cannot lock the file: whoever holds the slot next begins after its end."""
    clock, slots = HandClock(), tmp_path / "slots"
    holder = slots_maker(slots, clock)
    held = machine_of(holder.one())
    lent = [lend_slot(slots, NOON_MS, 1000) for _ in range(5)]
    grants = [grant for grant in lent if grant is not None]
    assert len({grant.machine_id for grant in grants} | {held}) == 6
    assert {(grant.from_ms, grant.until_ms) for grant in grants} == {(NOON_MS, NOON_MS + 1000)}
    heirs = [slots_maker(slots, clock, range(grant.machine_id, grant.machine_id + 1)) for grant in grants]
    assert all(id_time(heir.one()).timestamp() * 1000 >= NOON_MS + 1000 for heir in heirs)


def test_where_all_slots_are_lent_or_held_there_is_no_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(LocalSlots.__init__, "__defaults__", (range(7, 9),))
    assert lend_slot(tmp_path / "slots", NOON_MS, 1000) is not None
    held = slots_maker(tmp_path / "slots", HandClock(), range(7, 9))
    held.one()
    assert lend_slot(tmp_path / "slots", NOON_MS, 1000) is None
    held.source.forget()
    assert lend_slot(tmp_path / "slots", NOON_MS + 5000, 1000) is not None

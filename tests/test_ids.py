"""Ids: rising, unique, and as old as they say."""

import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from aaiclick import ids
from aaiclick.config import Settings, reset_settings, settings
from aaiclick.config_docs import FIXED_MACHINE_IDS
from aaiclick.errors import ConfigError, IdsExhausted, InputError
from aaiclick.id_grants import ALLOTTED_MACHINE_IDS, RANDOM_MACHINE_IDS, Grant, LocalSlots
from aaiclick.ids import EPOCH_MS, ID_MAX, IdMaker, id_time, new_id, new_ids, parse_id
from tests.support.ids import HOUR_S, NOON, HandClock, assert_rising, machine_of, slots_maker


def test_an_id_is_a_positive_63_bit_number_with_its_time(tmp_path: Path):
    made = slots_maker(tmp_path / "slots", HandClock()).one()
    assert 0 < made <= ID_MAX
    assert id_time(made) == NOON
    assert machine_of(made) in ALLOTTED_MACHINE_IDS


def test_ids_rise_one_by_one_and_in_bulk(tmp_path: Path):
    maker = slots_maker(tmp_path / "slots", HandClock())
    made = [maker.one(), *maker.many(10_000), maker.one(), *maker.many(1), *maker.many(0), maker.one()]
    assert len(made) == 10_004
    assert_rising(made)


def test_a_used_up_millisecond_is_followed_by_the_next_ahead_of_the_clock(tmp_path: Path):
    made = slots_maker(tmp_path / "slots", HandClock()).many(4096 * 3)
    assert Counter(id_time(each) - NOON for each in made) == {
        timedelta(milliseconds=0): 4096,
        timedelta(milliseconds=1): 4096,
        timedelta(milliseconds=2): 4096,
    }


def test_the_maker_waits_before_it_gets_too_far_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ids, "AHEAD_MS_MAX", 100)
    clock = HandClock()
    maker = slots_maker(tmp_path / "slots", clock)
    made = maker.many(4096 * 120)
    assert id_time(made[-1]) - NOON == timedelta(milliseconds=119)
    assert round(clock.monotonic_s * 1000) == 119 - 100


def test_ids_follow_the_clock_and_the_clock_of_a_sleeping_machine(tmp_path: Path):
    clock = HandClock()
    maker = slots_maker(tmp_path / "slots", clock)
    maker.one()
    clock.pass_by(0.25)
    assert id_time(maker.one()) == NOON + timedelta(milliseconds=250)
    clock.wall_s += HOUR_S  # asleep: only the time of day has gone on
    assert id_time(maker.one()) == NOON + timedelta(hours=1, seconds=0.25)
    clock.pass_by(20)
    assert id_time(maker.one()) == NOON + timedelta(hours=1, seconds=20.25)


def test_a_clock_that_is_set_back_changes_nothing(tmp_path: Path):
    clock = HandClock()
    maker = slots_maker(tmp_path / "slots", clock)
    made = [maker.one()]
    for _ in range(100):
        clock.pass_by(1)
        made.append(maker.one())
        clock.wall_s -= HOUR_S
    assert_rising(made)
    assert id_time(made[-1]) - id_time(made[0]) == timedelta(seconds=100)


def test_a_clock_before_the_epoch_still_makes_ids(tmp_path: Path):
    maker = slots_maker(tmp_path / "slots", HandClock(datetime(1970, 1, 1, tzinfo=UTC)))
    made = maker.many(5000)
    assert made[0] > 0
    assert_rising(made)


def test_a_clock_after_the_last_id_is_refused(tmp_path: Path):
    with pytest.raises(IdsExhausted, match="2093"):
        slots_maker(tmp_path / "slots", HandClock(datetime(2095, 1, 1, tzinfo=UTC))).one()


def test_threads_share_a_maker(tmp_path: Path):
    maker = IdMaker(LocalSlots(tmp_path / "slots"))
    made: list[list[int]] = [[] for _ in range(8)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=make_some, args=(maker, part)) for part in made]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    for part in made:
        assert_rising(part)
    assert len({each for part in made for each in part}) == 8 * 10_500


def make_some(maker: IdMaker, part: list[int]) -> None:
    for _ in range(500):
        part.append(maker.one())
        part.extend(maker.many(20))


# ---------------------------------------------------------------- the process's own maker


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A local root of this test's own, whose slots the process uses meanwhile."""
    for name in ("AAICLICK_SQL_URL", "AAICLICK_CH_URL", "AAICLICK_MACHINE_ID", "POSTGRES_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AAICLICK_LOCAL_ROOT", str(tmp_path / "root"))
    reset_settings()
    ids.set_id_source(None)
    yield tmp_path / "root"
    monkeypatch.undo()
    reset_settings()
    ids.set_id_source(None)


def slot_files(directory: Path) -> list[int]:
    return [int(file.name) for file in directory.iterdir()] if directory.exists() else []


def test_the_first_id_takes_a_slot_beside_the_database(root: Path):
    assert not root.exists()
    assert slot_files(root / "local.db.machine_ids") == []
    new_id()
    assert slot_files(root / "local.db.machine_ids") == [machine_of(new_id())]


def test_making_a_negative_number_of_ids_is_refused(root: Path):
    with pytest.raises(InputError, match="-1"):
        new_ids(-1)
    assert new_ids(0) == []


def test_two_roots_with_one_database_share_its_slots(root: Path, tmp_path: Path):
    def source(name: str) -> LocalSlots:
        env = {"AAICLICK_LOCAL_ROOT": str(tmp_path / name), "AAICLICK_SQL_URL": f"sqlite:///{tmp_path}/state.db"}
        found = ids.source_for(Settings.from_env(env))
        assert isinstance(found, LocalSlots)
        return found

    assert source("a").directory == source("b").directory == tmp_path / "state.db.machine_ids"


def test_connecting_to_another_file_takes_a_slot_there(root: Path, tmp_path: Path):
    before = new_id()
    ids.use_slots_of(tmp_path / "other.db")
    after = new_id()
    assert after > before
    assert slot_files(tmp_path / "other.db.machine_ids") == [machine_of(after)]
    ids.use_slots_of(tmp_path / "other.db")
    assert machine_of(new_id()) == machine_of(after)


def test_a_server_is_asked_before_ids_are_granted(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AAICLICK_SQL_URL", "postgresql://u:p@db/state")
    reset_settings()
    ids.set_id_source(None)
    before = new_id()
    assert machine_of(before) in RANDOM_MACHINE_IDS
    assert ids.granted_until_ms() == 0
    grant = Grant(9, int(time.time() * 1000), int(time.time() * 1000) + HOUR_S * 1000)
    ids.offer_grant(grant)
    assert machine_of(new_id()) == 9
    assert new_id() > before
    assert ids.granted_until_ms() == grant.until_ms
    assert not root.exists()


@pytest.mark.parametrize(
    "grant",
    [
        Grant(-1, EPOCH_MS, EPOCH_MS + 1),
        Grant(512, EPOCH_MS, EPOCH_MS + 1),
        Grant(1, 0, 1),
        Grant(1, EPOCH_MS, EPOCH_MS),
    ],
)
def test_a_grant_that_makes_no_sense_is_refused(root: Path, grant: Grant):
    with pytest.raises(InputError):
        ids.offer_grant(grant)


def test_a_fixed_machine_id_is_used_by_one_process_at_a_time(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AAICLICK_MACHINE_ID", "600")
    reset_settings()
    ids.set_id_source(None)
    assert 600 in FIXED_MACHINE_IDS
    assert machine_of(new_id()) == 600
    ids.offer_grant(Grant(9, EPOCH_MS, ids.LAST_MS))
    assert machine_of(new_id()) == 600
    assert ids.granted_until_ms() == ids.LAST_MS
    assert ids.source_for(settings()).grant(EPOCH_MS) is None


def test_wrong_settings_are_told_by_the_first_id(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AAICLICK_SQL_URL", "nonsense")
    reset_settings()
    ids.set_id_source(None)
    with pytest.raises(ConfigError, match="AAICLICK_SQL_URL"):
        new_id()


# ---------------------------------------------------------------- ids from outside


@pytest.mark.parametrize(("given", "expected"), [("1", 1), (str(ID_MAX), ID_MAX), (1, 1), (ID_MAX, ID_MAX)])
def test_an_id_is_read_from_text_or_number(given, expected):
    assert parse_id(given) == expected


WRONG_TEXTS = ["0", "-1", str(2**63), "1e3", "0x10", "1.0", "\uff11\uff12", "", " 1", "1 ", "1_0", "+1", "01", "1\0"]
WRONG_VALUES = [0, -1, 2**63, 1.0, float("nan"), True, None, b"1", ["1"], "\udcff", "9" * 5000]
HUGE = pytest.param(10**5000, id="huge")


@pytest.mark.parametrize("given", [*WRONG_TEXTS, *WRONG_VALUES, HUGE])
def test_what_is_no_id_is_refused_in_one_line(given):
    with pytest.raises(InputError) as caught:
        parse_id(given, "task_id")
    assert str(caught.value).startswith("task_id: ")
    assert str(ID_MAX) in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


def test_the_time_of_an_id_is_aware_and_in_utc():
    assert id_time(0) == datetime(2024, 1, 1, tzinfo=UTC)
    assert id_time(ID_MAX).year == 2093


# ---------------------------------------------------------------- borrowed


def lent(blocks: list[int], clock: HandClock | None = None) -> ids.BorrowedIds:
    """Borrow from a maker that notes how many were asked for."""
    numbers = iter(range(1, 1_000_000))

    def ask(count: int) -> list[int]:
        blocks.append(count)
        return [next(numbers) for _ in range(count)]

    return ids.BorrowedIds(ask, clock=clock or HandClock())


def test_borrowed_ids_come_in_blocks_that_grow():
    blocks: list[int] = []
    borrowed = lent(blocks)
    made = [borrowed.one() for _ in range(100)]
    assert made == list(range(1, 101))
    assert blocks == [16, 32, 64]


def test_many_borrowed_ids_take_few_questions():
    blocks: list[int] = []
    borrowed = lent(blocks)
    assert_rising(borrowed.many(10_000))
    assert len(blocks) < 6
    assert max(blocks) <= ids.BLOCK_MAX


def test_what_was_borrowed_and_is_left_can_be_forgotten():
    borrowed = lent([])
    assert borrowed.one() == 1
    borrowed.forget()
    assert borrowed.one() == 17


def test_what_is_left_of_a_block_is_not_used_when_it_is_old():
    clock, blocks = HandClock(), list[int]()
    borrowed = lent(blocks, clock)
    assert borrowed.one() == 1
    clock.pass_by(HOUR_S)
    assert borrowed.one() == 17
    assert blocks == [16, 16]

"""What may be asked for, what a machine offers, and which units are granted."""

from __future__ import annotations

import random
from typing import Any

import pytest

from aaiclick.errors import AaiclickError, InputError
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.rules.placement import lane_needs, merge, misses, needs_of
from aaiclick.orchestration.rules.resources import (
    GpuWish,
    Granted,
    Unit,
    amount_of,
    check_offer,
    check_resources,
    choose,
    given_to_body,
    gpu_wish,
    lacks,
    read_resource,
    unit_names,
    units_of,
    visible_devices,
    wanted,
)

BAD = [
    ([], "a dict"),
    ("gpu=1", "a dict"),
    ({"": 1}, "1 to 200"),
    ({"a b": 1}, "letters, digits"),
    ({"a/b": 1}, "letters, digits"),
    ({"ä": 1}, "letters, digits"),
    ({3: 1}, "must be a str"),
    ({"cpu": "1"}, "must be a number"),
    ({"cpu": None}, "must be a number"),
    ({"cpu": True}, "must be a number"),
    ({"cpu": float("nan")}, "must be a number"),
    ({"cpu": float("inf")}, "must be a number"),
    ({"cpu": -1}, "from 0 to"),
    ({"cpu": 10**13}, "from 0 to"),
    ({"cpu": 0.0001}, "three decimals"),
    ({"gpu": 1.5}, "a whole number"),
    ({"gpu": 1025}, "a whole number"),
    ({"gpu_memory_mb": 0.5}, "whole number"),
    ({"gpu": 0.5, "gpu_memory_mb": 100}, "not both"),
    ({f"n{number}": 1 for number in range(51)}, "at most 50"),
]


@pytest.mark.parametrize(("given", "rule"), BAD, ids=lambda value: str(value)[:30])
def test_what_cannot_be_asked_for_is_refused_in_one_line(given: Any, rule: str) -> None:
    with pytest.raises(InputError, match=rule) as refused:
        check_resources(given)
    assert "\n" not in str(refused.value)


def test_amounts_are_kept_as_they_are_in_the_order_of_their_names() -> None:
    assert check_resources({"gpu": 1.0, "cpu": 0.5, "db": 0}) == {"cpu": 0.5, "db": 0, "gpu": 1}
    assert wanted({"gpu": 1, "db": 0}) == {"gpu": 1}
    assert [amount_of(each) for each in (500, 2000, 0)] == [0.5, 2, 0]


@pytest.mark.parametrize("typed", ["gpu", "=1", "gpu=", "gpu=x", "gpu=nan", "gpu=-1", "a b=1"])
def test_what_is_typed_is_a_name_and_an_amount(typed: str) -> None:
    with pytest.raises(InputError, match="resource"):
        read_resource(typed)
    assert read_resource(" licence:a=2") == ("licence:a", 2)


# ---------------------------------------------------------------- what is said where


def test_resources_add_up_and_the_inner_amount_counts() -> None:
    around = needs_of("memory_gb >= 32", {"tenant:a": 1, "cpu": 1})
    inner = needs_of(None, {"cpu": 2, "gpu": 1})
    assert lane_needs(merge(around, inner), "m.f") == {
        "where": [["memory_gb", ">=", 32]],
        "resources": {"cpu": 2, "gpu": 1, "tenant:a": 1},
    }
    taken_back = merge(around, needs_of(None, {"tenant:a": 0, "cpu": 0}))
    assert "resources" not in lane_needs(taken_back, "m.f")
    assert needs_of(None, {}) == needs_of(None, None) == ""


@pytest.mark.parametrize(
    ("needs", "wish"),
    [
        ({"gpu": 2}, GpuWish(2)),
        ({"gpu_memory_mb": 600}, GpuWish(1, memory_mb=600)),
        ({"gpu": 3, "gpu_memory_mb": 600}, GpuWish(3, memory_mb=600)),
        ({"gpu": 0.5}, GpuWish(1, fraction=0.5)),
        ({"gpu": 0.5, "gpu_memory_mb": 600}, GpuWish(1, memory_mb=600)),
        ({"cpu": 1}, None),
        ({"gpu": 0}, None),
    ],
)
def test_what_gpu_and_its_memory_mean_together(needs: dict[str, float], wish: GpuWish | None) -> None:
    assert gpu_wish(needs) == wish


# ---------------------------------------------------------------- what machines have


@pytest.mark.parametrize(
    "given",
    [
        [],
        {"gpu": 1.5},
        {"gpu": [3]},
        {"gpu": [{"memory": 3}]},
        {"gpu": [{"memory_mb": -1}]},
        {"gpu": [{}] * 1025},
        {"cpu": "many"},
        {"a b": 1},
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_a_machine_cannot_have_is_refused(given: Any) -> None:
    with pytest.raises(AaiclickError):
        check_offer(given)


def test_a_machine_offers_amounts_and_a_list_of_gpus() -> None:
    plain = {"device": "0", "memory_mb": None}
    assert check_offer({"gpu": 1, "cpu": 4.0, "db": 0}) == {"cpu": 4, "gpu": [plain]}
    assert check_offer({"gpu": 2, "gpu_memory_mb": 100})["gpu"][1] == {"device": "1", "memory_mb": 100}
    assert check_offer({"gpu": [{"memory_mb": 5}], "gpu_memory_mb": 100})["gpu"][0]["memory_mb"] == 100
    offer = check_offer({"gpu": [{"memory_mb": 5, "device": "MIG-1", "model": "A"}], "cpu": 0.5})
    assert check_offer(offer) == offer
    assert units_of(7, offer) == [Unit(7, "cpu", 0, 500), Unit(7, "gpu", 0, 5000, "MIG-1", 5)]


def test_a_machine_lacks_what_it_can_never_give_and_not_what_all_may_have() -> None:
    offer = check_offer({"cpu": 4, "gpu": [{"memory_mb": 100}, {"memory_mb": 500}], "db": 1})
    assert lacks({"cpu": 4, "gpu": 2, "licence:a": 9}, offer) == []
    assert lacks({"cpu": 5, "db": 2}, offer) == ["cpu is 4, needed is 5", "db is 1, needed is 2"]
    assert lacks({"memory_mb": 1}, offer) == ["it has no memory_mb"]
    (said,) = lacks({"gpu": 2, "gpu_memory_mb": 300}, offer)
    assert said == "it has 1 GPUs for gpu=2, gpu_memory_mb=300, needed are 2"
    assert lacks({"gpu_memory_mb": 1}, check_offer({"gpu": 1})) != [], "the memory of this GPU is not known"
    box = NodeDescription("box", resources=offer)
    assert misses({"resources": {"gpu": 3}}, box) == ["it has 2 GPUs for gpu=3, needed are 3"]


# ---------------------------------------------------------------- which units

SMALL, LARGE = Unit(1, "gpu", 0, 10_000_000, "0", 10_000), Unit(1, "gpu", 1, 24_000_000, "1", 24_000)


def slots(found: list[list[Granted]]) -> list[list[int]]:
    return [[grant.slot for grant in grants] for grants in found]


def test_the_gpu_is_taken_of_which_the_least_is_left() -> None:
    assert slots(choose({"gpu_memory_mb": 6000}, [LARGE, SMALL], {}, 9)) == [[0], [1], [1], [1], [1]]
    assert slots(choose({"gpu": 1}, [LARGE, SMALL], {}, 9)) == [[0], [1]]
    assert slots(choose({"gpu": 2, "gpu_memory_mb": 6000}, [LARGE, SMALL], {}, 9)) == [[0, 1]]
    assert slots(choose({"gpu": 0.5}, [SMALL], {}, 9)) == [[0], [0]]
    assert slots(choose({"gpu": 1}, [SMALL], {(1, "gpu", 0): 1}, 9)) == []


def test_a_gpu_of_unknown_memory_is_given_whole_or_in_parts_and_not_by_memory() -> None:
    unknown = Unit(1, "gpu", 0, 1000, "0")
    assert slots(choose({"gpu": 0.3}, [unknown], {}, 9)) == [[0]] * 3
    assert choose({"gpu_memory_mb": 1}, [unknown], {}, 9) == []


def test_something_that_is_nowhere_is_granted_to_nobody() -> None:
    assert choose({"db": 1}, [], {}, 1) == []
    assert choose({"db": 1, "cpu": 1}, [Unit(0, "db", 0, 1000)], {}, 1) == []


@pytest.mark.parametrize("seed", range(20))
def test_no_unit_is_ever_given_more_often_than_it_is_there(seed: int) -> None:
    dice = random.Random(seed)
    units = [Unit(1, "gpu", slot, dice.randint(1, 9) * 1000, str(slot), 1) for slot in range(4)]
    units = [unit._replace(memory_mb=unit.size // 1000) for unit in units]
    units += [Unit(0, "db", 0, 3500), Unit(1, "db", 0, 2000)]
    held: dict[tuple[int, str, int], int] = {}
    asked: list[dict[str, float]] = [{"gpu": 1}, {"gpu": 2, "gpu_memory_mb": 2}, {"gpu_memory_mb": 3, "db": 0.5}]
    for _ in range(12):
        needs = dice.choice([*asked, {"db": 1.5}])
        for grants in choose(needs, units, held, dice.randint(1, 3)):
            assert {grant.name for grant in grants} == {*unit_names(needs)}
            for grant in grants:
                held[grant[:3]] = held.get(grant[:3], 0) + grant.amount
    assert all(held.get(unit[:3], 0) <= unit.size for unit in units)


def test_a_body_is_told_indices_and_amounts() -> None:
    (grants,) = choose({"gpu": 2, "gpu_memory_mb": 600, "db": 0.5}, [SMALL, LARGE, Unit(0, "db", 0, 1000)], {}, 1)
    assert given_to_body(grants) == {"db": 0.5, "gpu": [0, 1], "gpu_memory_mb": 600}
    assert visible_devices(grants) == "0,1"
    slices = [Granted(1, "gpu", 3, 5, "MIG-3", 5), Granted(1, "gpu", 2, 5, "MIG-2", 5)]
    assert visible_devices(slices) == "MIG-2,MIG-3"
    assert visible_devices([Granted(0, "db", 0, 5)]) is None

"""Resources: named capacities, how much of them a task needs, and which units it is granted.

A capacity is of a node or of the whole installation. Each GPU is a unit of its own; any other capacity is one unit, of
which parts are granted. Amounts are stored in thousandths, so that they add up exactly. For a GPU they are thousandths
of a megabyte of its memory; for one whose memory is not known, thousandths of the GPU.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.lanes import canonical
from aaiclick.orchestration.rules.validation import check_name, shorten

GPU, GPU_MEMORY_MB = "gpu", "gpu_memory_mb"
ON_NODES = frozenset({GPU, GPU_MEMORY_MB, "cpu", "memory_mb"})
"""What machines have, and not the installation as a whole."""

WORLD = 0
"""The scope of capacities of the whole installation; the scope of others is the id of their node."""

THOUSAND = 1000
AMOUNT_MAX = 10**12
GPUS_MAX = 1_024
NAMES_MAX = 50
_NAME = re.compile(r"[A-Za-z0-9_.:@+-]+")

Resources: TypeAlias = Mapping[str, float]
"""What users say that a task needs: amounts by name."""


class Unit(NamedTuple):
    """A capacity of which parts are granted: a GPU of a node, or all that there is of something else."""

    scope: int
    name: str
    slot: int
    size: int
    """In thousandths."""
    device: str | None = None
    """How programs name a GPU: its index, or the UUID of a slice."""
    memory_mb: int | None = None


class Granted(NamedTuple):
    """A part of a unit that a run holds."""

    scope: int
    name: str
    slot: int
    amount: int
    """In thousandths."""
    device: str | None = None
    memory_mb: int | None = None
    """How much memory of a GPU was granted; None if its memory is not known."""


Place: TypeAlias = tuple[int, str, int]
"""Which unit: scope, name, slot."""


@dataclass(frozen=True, slots=True)
class GpuWish:
    """What a task needs of GPUs: so many of them, and of each all, a fraction, or so much memory."""

    count: int
    fraction: float | None = None
    memory_mb: int | None = None

    def part_of(self, unit: Unit) -> int | None:
        """Return how much of a GPU would be granted, in thousandths; None if it can never be enough."""
        if self.memory_mb is not None:
            part = self.memory_mb * THOUSAND
            return part if unit.memory_mb is not None and part <= unit.size else None
        return unit.size if self.fraction is None else math.ceil(unit.size * self.fraction)


# ---------------------------------------------------------------- what users say


def check_resources(given: object, field: str = "resources") -> dict[str, float]:
    """Return the amounts by name, in the order of the names, if they may be asked for. 0 takes back what is around."""
    if not isinstance(given, Mapping) or len(given) > NAMES_MAX:
        raise _refused(field, given, f"it must be a dict of at most {NAMES_MAX} amounts by name")
    found = {check_resource(name, field): check_amount(name, amount, field) for name, amount in given.items()}
    if 0 < found.get(GPU, 0) < 1 and found.get(GPU_MEMORY_MB):
        raise _refused(field, dict(given), "a share of a GPU is a fraction or so much memory, not both")
    return dict(sorted(found.items()))


def check_resource(name: object, field: str = "resource") -> str:
    """Return the name of a resource if it is one."""
    text = check_name(name, field)
    if not _NAME.fullmatch(text):
        raise _refused(field, name, "a name has letters, digits and . : @ + _ - only")
    return text


def check_amount(name: str, amount: object, field: str = "resources") -> float:
    """Return an amount of this resource if it may be asked for, as a whole number if it is one."""
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not math.isfinite(amount):
        raise _refused(field, amount, f"the amount of {shorten(name)} must be a number")
    if not 0 <= amount <= AMOUNT_MAX:
        raise _refused(field, amount, f"the amount of {shorten(name)} must be from 0 to {AMOUNT_MAX}")
    if round(amount, 3) != amount:
        raise _refused(field, amount, f"the amount of {shorten(name)} has more than three decimals")
    is_whole = amount == int(amount)
    if name == GPU and (amount > GPUS_MAX or not (is_whole or amount < 1)):
        raise _refused(field, amount, f"gpu must be a whole number up to {GPUS_MAX}, or a fraction of one")
    if name == GPU_MEMORY_MB and not is_whole:
        raise _refused(field, amount, "gpu_memory_mb must be a whole number")
    return int(amount) if is_whole else float(amount)


def _refused(field: str, value: object, rule: str) -> InputError:
    hint = 'For example {"gpu": 1, "gpu_memory_mb": 6000, "licence:abaqus": 1}.'
    return InputError(field=field, value=shorten(value), rule=rule, hint=hint)


def read_resource(typed: str) -> tuple[str, float]:
    """Return name and amount of a resource that was typed as `name=amount`."""
    name, sign, text = typed.rpartition("=")
    try:
        amount = float(text if sign else "none")
    except ValueError:
        rule, hint = "it is written name=amount", "For example gpu=2 or licence:abaqus=5."
        raise InputError(field="resource", value=shorten(typed), rule=rule, hint=hint) from None
    checked = check_resource(name.strip())
    return checked, check_amount(checked, amount, "resource")


def merged(outer: Resources, inner: Resources) -> dict[str, float]:
    """Return the needs of what lies in something that has needs of its own: names add up, the inner amount counts."""
    return dict(sorted({**outer, **inner}.items()))


def with_resources(placed: Mapping[str, Any] | None, resources: Resources | None) -> str:
    """Return the canonical text of needs: those of a placement, and resources that were checked."""
    needs = {**(placed or {}), **({"resources": resources} if resources else {})}
    return canonical(needs) if needs else ""


def stored(given: Resources | None) -> str | None:
    """Return resources as text, checked; None if nothing is asked for."""
    return canonical(check_resources(given)) if given else None


def wanted(resources: Resources) -> dict[str, float]:
    """Return what is really needed: amounts of 0 are left out."""
    return {name: amount for name, amount in sorted(resources.items()) if amount}


def gpu_wish(resources: Resources) -> GpuWish | None:
    """Return what is needed of GPUs; None if nothing is.

    `gpu` alone is so many whole ones, or a fraction of one; `gpu_memory_mb` alone a share of one; both together are a
    share of so much memory on each of so many different ones.
    """
    count, memory_mb = resources.get(GPU, 0), int(resources.get(GPU_MEMORY_MB, 0))
    if memory_mb:
        return GpuWish(max(1, math.ceil(count)), memory_mb=memory_mb)
    if not count:
        return None
    return GpuWish(int(count)) if count >= 1 else GpuWish(1, fraction=count)


# ---------------------------------------------------------------- what machines have


def check_offer(given: object) -> dict[str, Any]:
    """Return what a machine offers, in one form: amounts by name, and for `gpu` a list of GPUs.

    A GPU is a dict with `memory_mb` and `device`, both of which may be left out. A number stands for as many GPUs;
    `gpu_memory_mb` beside it says what each of them has.
    """
    if not isinstance(given, Mapping) or len(given) > NAMES_MAX:
        raise _refused("resources", given, f"it must be a dict of at most {NAMES_MAX} amounts by name")
    plain = {name: amount for name, amount in given.items() if name != GPU}
    found: dict[str, Any] = {check_resource(name): check_amount(name, amount) for name, amount in plain.items()}
    memory_mb = found.pop(GPU_MEMORY_MB, None)
    gpus = given.get(GPU, 0)
    if not isinstance(gpus, Sequence) or isinstance(gpus, str):
        count = check_amount(GPU, gpus)
        if count != int(count):
            raise _refused("resources", gpus, "a machine has a whole number of GPUs")
        gpus = [{}] * int(count)
    if len(gpus) > GPUS_MAX:
        raise _refused("resources", len(gpus), f"a machine has at most {GPUS_MAX} GPUs")
    offered = [_gpu(each, index, memory_mb) for index, each in enumerate(gpus)]
    return wanted(found) | ({GPU: offered} if offered else {})


def _gpu(given: Any, index: int, said_mb: float | None) -> dict[str, Any]:
    if not isinstance(given, Mapping) or given.keys() - {"memory_mb", "device", "model"}:
        raise _refused("resources", given, "a GPU is a dict with memory_mb, device and model")
    memory_mb, device = said_mb or given.get("memory_mb"), given.get("device")
    if memory_mb is not None:
        memory_mb = check_amount(GPU_MEMORY_MB, memory_mb) or None
    found = {"device": str(index) if device is None else check_name(device, "device"), "memory_mb": memory_mb}
    return found | ({"model": check_name(given["model"], "model")} if given.get("model") else {})


def units_of(scope: int, offer: Mapping[str, Any]) -> list[Unit]:
    """Return the units of what a machine offers."""
    found = [Unit(scope, name, 0, milli(amount)) for name, amount in offer.items() if name != GPU]
    for slot, gpu in enumerate(offer.get(GPU, ())):
        memory_mb = gpu["memory_mb"]
        found.append(Unit(scope, GPU, slot, (memory_mb or 1) * THOUSAND, gpu["device"], memory_mb))
    return sorted(found)


def lacks(resources: Resources, offer: Mapping[str, Any]) -> list[str]:
    """Return what a machine can never give, for people; what it does not have may be there for all machines."""
    found = []
    if (wish := gpu_wish(resources)) is not None:
        units = [unit for unit in units_of(WORLD, offer) if unit.name == GPU]
        fitting = sum(wish.part_of(unit) is not None for unit in units)
        if fitting < wish.count:
            found.append(f"it has {fitting} GPUs for {described(resources)}, needed are {wish.count}")
    for name, amount in plain_needs(resources).items():
        if name in ON_NODES and name not in offer:
            found.append(f"it has no {name}")
        elif name in offer and offer[name] < amount:
            found.append(f"{name} is {offer[name]}, needed is {amount}")
    return found


def described(resources: Resources) -> str:
    """Return amounts as one line: `gpu=1, gpu_memory_mb=6000`."""
    return ", ".join(f"{name}={amount}" for name, amount in resources.items())


# ---------------------------------------------------------------- which units


def milli(amount: float) -> int:
    """Return an amount in thousandths."""
    return round(amount * THOUSAND)


def amount_of(thousandths: int) -> float:
    """Return an amount that is stored in thousandths, as a whole number if it is one."""
    whole, rest = divmod(thousandths, THOUSAND)
    return whole if not rest else thousandths / THOUSAND


def plain_needs(resources: Resources) -> dict[str, float]:
    """Return the needs of all but GPUs."""
    return {name: amount for name, amount in resources.items() if name not in (GPU, GPU_MEMORY_MB)}


def unit_names(resources: Resources) -> list[str]:
    """Return the names of the units that these needs are granted of, in the order in which they are locked."""
    return sorted({*plain_needs(resources), *([GPU] if gpu_wish(resources) is not None else [])})


def choose(resources: Resources, units: Sequence[Unit], held: Mapping[Place, int], most: int) -> list[list[Granted]]:
    """Return what up to `most` tasks with the same needs are granted, one after the other; fewer if there is no more.

    Each gets all that it needs or nothing. Of several GPUs, those are taken of which the least is left over.
    """
    free = {unit[:3]: unit.size - held.get(unit[:3], 0) for unit in units}
    found: list[list[Granted]] = []
    while len(found) < most:
        grants = _choose_one(resources, units, free)
        if grants is None:
            break
        for grant in grants:
            free[grant[:3]] -= grant.amount
        found.append(grants)
    return found


def _choose_one(resources: Resources, units: Sequence[Unit], free: Mapping[Place, int]) -> list[Granted] | None:
    grants: list[Granted] = []
    for name, amount in plain_needs(resources).items():
        there = [unit for unit in units if unit.name == name]
        if not there or any(free[unit[:3]] < milli(amount) for unit in there):
            return None
        grants += [Granted(unit.scope, name, unit.slot, milli(amount)) for unit in there]
    wish = gpu_wish(resources)
    if wish is None:
        return grants
    fitting = sorted(_fitting(wish, units, free))[: wish.count]
    return grants + [grant for *_, grant in fitting] if len(fitting) == wish.count else None


def _fitting(
    wish: GpuWish, units: Iterable[Unit], free: Mapping[Place, int]
) -> Iterable[tuple[int, int, int, Granted]]:
    """Yield the GPUs that have enough left, each with what remains of it, its size and its slot."""
    for unit in units:
        part = wish.part_of(unit) if unit.name == GPU else None
        left = free[unit[:3]]
        if part is not None and part <= left:
            memory_mb = None if unit.memory_mb is None else part // THOUSAND
            grant = Granted(unit.scope, GPU, unit.slot, part, unit.device, memory_mb)
            yield left - part, unit.size, unit.slot, grant


# ---------------------------------------------------------------- what a body is told


def given_to_body(grants: Iterable[Granted]) -> dict[str, Any]:
    """Return what a run was granted: `gpu` as a list of indices, `gpu_memory_mb` of each, amounts of all else."""
    found: dict[str, Any] = {}
    for grant in grants:
        if grant.name == GPU:
            found.setdefault(GPU, []).append(grant.slot)
            if grant.memory_mb is not None:
                found[GPU_MEMORY_MB] = min(grant.memory_mb, found.get(GPU_MEMORY_MB, grant.memory_mb))
        else:
            found[grant.name] = amount_of(grant.amount)
    return {name: sorted(value) if name == GPU else value for name, value in found.items()}


def visible_devices(grants: Iterable[Granted]) -> str | None:
    """Return the value of CUDA_VISIBLE_DEVICES for a run; None if it was granted no GPU."""
    gpus = sorted(grant for grant in grants if grant.name == GPU)
    return ",".join(grant.device or str(grant.slot) for grant in gpus) or None

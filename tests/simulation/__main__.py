"""`python -m tests.simulation SEED [PLANTED]`: the whole trace of one seed, with a planted mistake if one is named."""

import sys

from tests.simulation.plants import HARMLESS, MISTAKES, WEATHER, planted
from tests.simulation.simulate import simulate
from tests.simulation.world import Weather

seed, name = [*sys.argv[1:], ""][:2]
plants = MISTAKES | HARMLESS | {"": tuple}
with planted(plants[name]):
    outcome = simulate(int(seed), WEATHER.get(name, Weather()))
print(*outcome.trace, sep="\n")
print(*outcome.violations, sep="\n")
print(dict(sorted(outcome.counts.items())))
print(f"{outcome.seconds:.0f} s of virtual time, digest {outcome.digest}")
sys.exit(bool(outcome.violations))

"""One setting: its variable, default, accepted values and meaning."""

from __future__ import annotations

from dataclasses import dataclass

MONTH_S = 30 * 24 * 3600
YEARS_S = 10 * 365 * 24 * 3600


@dataclass(frozen=True)
class Setting:
    """One environment variable: the field of `Settings` it sets, what it accepts and what it means."""

    name: str
    field: str
    default: str
    meaning: str
    accepts: str = ""
    low: float | None = None
    high: float | None = None
    whole: bool = True

    @property
    def rule(self) -> str:
        """The accepted values, in words."""
        if self.low is None or self.high is None:
            return self.accepts
        return f"a {'whole ' if self.whole else ''}number from {self.low:.15g} to {self.high:.15g}"


def seconds(name: str, to: str, default: str, meaning: str, low: float = 1, high: float = MONTH_S) -> Setting:
    return Setting(name, to, default, meaning, low=low, high=high, whole=False)


def whole(name: str, to: str, default: str, meaning: str, bounds: tuple[int, int]) -> Setting:
    return Setting(name, to, default, meaning, low=bounds[0], high=bounds[1])


def age(name: str, to: str, default: str, meaning: str) -> Setting:
    return seconds(name, to, default, f"{meaning} 0: never.", low=0, high=YEARS_S)

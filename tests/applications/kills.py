"""When instances are killed and come back: at varied times, drawn anew in every run."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

LONGEST_AWAY: Final = 45.0  # seconds: the only instance has to be back before 100 s stand still


@dataclass(frozen=True)
class Kill:
    """One instance is away from one second to another, counted from the beginning."""

    instance: int
    killed: float
    back: float


def draw_kills(chance: random.Random, *, seconds: float, count: int, instances: int) -> list[Kill]:
    """Draw so many kills, one after the other, within the time; at its end all have been back.

    The time is cut into equal parts, with one kill in each: it dies in the first quarter and is away
    for an eighth to a half of it, but no longer than `LONGEST_AWAY`. So no two are away at once, and the
    rest is for what follows.
    """
    borders = [seconds * number / count for number in range(count + 1)]
    return [
        Kill(
            instance=chance.randrange(instances),
            killed=begin + (killed := chance.uniform(0.05, 0.25) * (end - begin)),
            back=begin + killed + min(chance.uniform(0.125, 0.5) * (end - begin), LONGEST_AWAY),
        )
        for begin, end in pairwise(borders)
    ]

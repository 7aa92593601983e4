"""What comparing a round with the known state costs: 10,000 topics with 50,000 partitions; figures are printed.

Only processor time counts, so that other work on the machine matters little.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from rules.changes.advance import advance_changes
from rules.facts.change_events import ChangeEvent
from rules.facts.change_memory import ChangeMemory
from rules.facts.column import Ragged
from rules.facts.configs import Config, ConfigEntry, Configs, ConfigSource, TopicConfigs
from rules.facts.last_observation import microseconds
from rules.facts.memory import Memory, advance
from rules.facts.snapshot import Absence, Snapshot
from service.storage.formats.checkpoint import FORMAT, Checkpoint, decode, encode
from tests.factories import at, partitions, snapshot

TOPICS: Final = 10_000
EACH: Final = 5
COUNTS: Final = {f"topic-{number:05}": EACH for number in range(TOPICS)}
PLACED: Final = partitions(COUNTS)
NAMES: Final = 18  # settings of a topic
ROUNDS: Final = 5


def config(retention: str) -> Config:
    others = (ConfigEntry(f"setting.{n}", "1", ConfigSource.DEFAULT) for n in range(NAMES - 1))
    return Config((*others, ConfigEntry("retention.ms", retention, ConfigSource.TOPIC)))


def configs(retention: Callable[[int], str]) -> Configs:
    """Return settings of every topic; the same ones are the same object."""
    distinct = {value: config(value) for value in map(retention, range(TOPICS))}
    places = {value: place for place, value in enumerate(distinct)}
    of_topic = np.array([places[retention(number)] for number in range(TOPICS)], np.int64)
    return Configs(topics=TopicConfigs(distinct=tuple(distinct.values()), of_topic=of_topic))


ALIKE: Final = configs(lambda number: str(number % 5))
EACH_ITS_OWN: Final = configs(str)
BEFORE: Final = snapshot(partitions=PLACED, configs=ALIKE)


def compare(after: Snapshot, before: Snapshot = BEFORE) -> tuple[float, int]:
    """Return the milliseconds of processor time of a comparison, and how many events it has."""
    _, memory = advance_changes(before, microseconds(before.taken_at), ChangeMemory())
    begin = time.process_time()
    events: tuple[ChangeEvent, ...] = ()
    for _ in range(ROUNDS):
        events, _ = advance_changes(after, microseconds(at(15)), memory)
    return 1000 * (time.process_time() - begin) / ROUNDS, len(events)


def test_what_a_comparison_costs() -> None:
    isr = replace(PLACED, isr=Ragged.of([(1, 2)] * len(PLACED)))
    moved = replace(PLACED, replicas=Ragged.of([(4, 5, 6)] * len(PLACED)))
    none = partitions({})
    cases = {
        "nothing changed": BEFORE,
        "every ISR changed": replace(BEFORE, partitions=isr),
        "every partition reassigned": replace(BEFORE, partitions=moved),
        "a setting of every topic, to 5 values": replace(BEFORE, configs=configs(lambda n: str(5 + n % 5))),
        "a setting of every topic, each to its own value": replace(BEFORE, configs=EACH_ITS_OWN),
        "every topic deleted": replace(
            BEFORE, partitions=none, absences=dict.fromkeys(COUNTS, Absence.DELETED)
        ),
    }  # fmt: skip
    print(f"\n{TOPICS:,} topics, {len(PLACED):,} partitions, {NAMES} settings of a topic")
    for name, after in cases.items():
        took_ms, count = compare(after)
        print(f"{name}: {took_ms:.1f} ms, {count:,} events")


def test_what_the_known_state_adds_to_a_checkpoint() -> None:
    for name, settings in (("5 sets", ALIKE), ("each its own", EACH_ITS_OWN)):
        seen = snapshot(partitions=PLACED, configs=settings)
        _, changes = advance_changes(seen, microseconds(seen.taken_at), ChangeMemory())
        memory = advance(seen)
        without, base = encoded(memory)
        took, size = encoded(replace(memory, changes=changes))
        print(
            f"\nsettings, {name}: {size / 1e3:,.0f} kB instead of {base / 1e3:,.0f} kB, "
            f"{1000 * took:.0f} ms instead of {1000 * without:.0f} ms"
        )


def encoded(memory: Memory) -> tuple[float, int]:
    """Return the seconds of processor time to encode a memory once more, and its bytes."""
    encode(Checkpoint(memory=memory))
    begin = time.process_time()
    content = encode(Checkpoint(memory=memory))
    took = time.process_time() - begin
    assert decode(content, FORMAT).memory is not None
    return took, len(content)

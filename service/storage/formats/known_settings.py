"""Known settings as arrays: each distinct setting is stored once, and a set of them as their positions.

Thousands of topics mostly share a few sets; where each has its own, nearly all of their settings are the same.
Most rounds have the settings of the round before, which are encoded once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from rules.facts.column import Int64s, Ragged
from rules.facts.configs import Config, ConfigEntry, ConfigSource, TopicConfigs
from rules.facts.known_settings import KnownSettings
from rules.facts.partitions import Partitions
from service.storage.formats.arrays import (
    Arrays,
    ints_of,
    put_lists,
    read_lists,
    read_text,
    text_of,
)
from service.storage.formats.values import read

SETTINGS: Final = "settings"  # absent in older checkpoints
ENTRIES: Final = f"{SETTINGS}.entries"
SETS: Final = f"{SETTINGS}.sets"
OF_TOPIC: Final = f"{SETTINGS}.of_topic"
REMEMBERED: Final = 8  # of clusters, or of rounds

Row = tuple[str, str | None, str]  # name, value, source


def put_settings(into: Arrays, settings: KnownSettings, place: int | None) -> None:
    """Add settings; `place` is where their partitions are stored."""
    into[SETTINGS] = text_of(
        {
            "place": place,
            "brokers": {str(name): _rows(config) for name, config in settings.brokers.items()},
            "features": None if settings.features is None else dict(settings.features),
            "features_epoch": settings.features_epoch,
            "seen_us": settings.seen_us,
        }
    )
    into |= _encoded(settings.topics)


def read_settings(arrays: Arrays, places: list[Partitions]) -> KnownSettings:
    """Read settings that `put_settings` added; nothing is known of what older checkpoints lack.

    Raises:
        LookupError, TypeError, ValueError: the stored value is malformed.
    """
    if SETTINGS not in arrays:
        return KnownSettings()
    stored = read_text(arrays[SETTINGS])
    brokers = read(dict[str, tuple[Row, ...]], stored["brokers"])
    place, epoch = stored["place"], stored["features_epoch"]
    features = stored["features"]
    return KnownSettings(
        partitions=None if place is None else places[place],
        topics=_topics(arrays),
        brokers={int(name): Config(tuple(map(_entry, rows))) for name, rows in brokers.items()},
        features=None if features is None else read(dict[str, int], features),
        features_epoch=None if epoch is None else int(epoch),
        seen_us=int(stored["seen_us"]),
    )


@lru_cache(REMEMBERED)
def _encoded(topics: TopicConfigs) -> Arrays:
    numbers: dict[ConfigEntry, int] = {}
    sets = [
        [numbers.setdefault(entry, len(numbers)) for entry in config.entries]
        for config in topics.distinct
    ]
    arrays: Arrays = {ENTRIES: text_of([_row(entry) for entry in numbers])}
    put_lists(arrays, SETS, Ragged.of(sets))
    arrays[OF_TOPIC] = topics.of_topic
    return arrays


def _topics(arrays: Arrays) -> TopicConfigs:
    entries = [_entry(row) for row in read(tuple[Row, ...], read_text(arrays[ENTRIES]))]
    count = len(arrays[f"{SETS}#"])
    sets = read_lists(arrays, SETS, count)
    distinct = tuple(
        Config(tuple(entries[number] for number in numbers or ())) for numbers in sets.to_list()
    )
    return TopicConfigs(distinct=distinct, of_topic=_places(arrays, count))


def _places(arrays: Arrays, count: int) -> Int64s:
    places = ints_of(arrays[OF_TOPIC])
    if np.any((places < -1) | (places >= count)):
        raise ValueError("a topic has settings that are not stored")
    return places


def _rows(config: Config) -> list[Row]:
    return [_row(entry) for entry in config.entries]


def _row(entry: ConfigEntry) -> Row:
    return entry.name, entry.value, entry.source.value


def _entry(row: Row) -> ConfigEntry:
    name, value, source = row
    return ConfigEntry(name, value, ConfigSource(source))

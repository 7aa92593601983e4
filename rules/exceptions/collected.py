"""All that a text says of Kafka, in bounded memory: errors that are known, words that are not, logged states."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from rules.exceptions.incidents import Incident, incidents_of
from rules.exceptions.judging import decisive
from rules.exceptions.repeats import Repeats
from rules.exceptions.timeline import Timeline, timelines
from rules.facts.application_log import (
    ApplicationError,
    ApplicationEvent,
    Names,
    TransactionLogged,
)

MOST_STATES: Final = 20_000  # lines of the transaction log


class Collected:
    """Takes events as they come; what it concludes is of all of them, when no more come."""

    def __init__(self) -> None:
        self._known, self._unknown = Repeats(), Repeats()
        self._states: list[TransactionLogged] = []
        self._states_not_kept = 0

    def add(self, events: Iterable[ApplicationEvent]) -> None:
        """Take events in their order."""
        for event in events:
            if isinstance(event, ApplicationError):
                (self._unknown if decisive(event) is None else self._known).add([event])
            elif len(self._states) < MOST_STATES:
                self._states.append(event)
            else:
                self._states_not_kept += 1

    @cached_property
    def incidents(self) -> list[Incident]:
        """Return the incidents, the harmless ones last."""
        return sorted(incidents_of(self._known.events), key=lambda each: each.is_harmless)

    @cached_property
    def timelines(self) -> list[Timeline]:
        """Return the states of transactional ids."""
        return timelines(self._states)

    @property
    def unknown(self) -> list[ApplicationError]:
        """Return what is Kafka's and has no known error."""
        return self._unknown.events

    @property
    def not_kept(self) -> int:
        """Return how many errors and states exceeded the limits."""
        return self._known.not_kept + self._unknown.not_kept + self._states_not_kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Subjects:
    """The names that a text is about, each once."""

    partitions: tuple[tuple[str, int], ...]
    transactional_ids: tuple[str, ...]
    groups: tuple[str, ...]

    @property
    def is_any(self) -> bool:
        """Whether there is any."""
        return bool(self.partitions or self.transactional_ids or self.groups)


def subjects_of(collected: Collected, others: Iterable[Names] = ()) -> Subjects:
    """Return the names of incidents, of logged states, and others of the same text."""
    every = [
        names
        for incident in collected.incidents
        for names in (incident.names, *(problem.names for problem in incident.problems))
    ]
    every += others
    places = [
        (names.topic, names.partition)
        for names in every
        if names.topic is not None and names.partition is not None
    ]
    logged = [timeline.transactional_id for timeline in collected.timelines]
    ids = [names.transactional_id for names in every if names.transactional_id is not None]
    groups = [names.group for names in every if names.group is not None]
    return Subjects(
        partitions=tuple(dict.fromkeys(places)),
        transactional_ids=tuple(dict.fromkeys([*ids, *logged])),
        groups=tuple(dict.fromkeys(groups)),
    )

"""The open findings of a round as lists: sorted once, and by the digits of their ids."""

from __future__ import annotations

import json
from collections.abc import Mapping

from rules.facts.last_observation import microseconds
from rules.open_findings import Identity, OpenFinding
from service.api.core.paging import Key, Ordered, ordered
from service.api.core.per_round import PerRound
from service.api.core.problems import unavailable
from service.api.findings.views import digits_of
from service.rounds.latest import ServiceState

Open = Mapping[Identity, OpenFinding]


class OpenList:
    """The open findings of the round that was last requested."""

    def __init__(self) -> None:
        self._ordered: PerRound[Open, Ordered[OpenFinding]] = PerRound(_in_order)
        self._by_id: PerRound[Open, Mapping[tuple[str, str], OpenFinding]] = PerRound(_by_id)

    def newest_first(self, state: ServiceState) -> Ordered[OpenFinding]:
        """Return all open findings, to be paged from the end.

        Raises:
            ProblemError: no round has ended yet.
        """
        return self._ordered.of(open_findings(state))

    def find(self, state: ServiceState, rule_id: str, digits: str) -> OpenFinding | None:
        """Return the open finding of a rule whose labels' hash begins with `digits`."""
        return self._by_id.of(state.open_findings).get((rule_id, digits))


def open_findings(state: ServiceState) -> Open:
    """Return the open findings.

    Raises:
        ProblemError: no round has ended yet.
    """
    if not state.rounds and not state.open_findings:
        raise unavailable("no round has ended yet")
    return state.open_findings


def _in_order(findings: Open) -> Ordered[OpenFinding]:
    return ordered(findings.values(), _key)


def _key(entry: OpenFinding) -> Key:
    return microseconds(entry.since), json.dumps(entry.identity)


def _by_id(findings: Open) -> dict[tuple[str, str], OpenFinding]:
    return {(entry.identity[0], digits_of(entry)): entry for entry in findings.values()}

"""What rounds found is neither lost nor doubled, whatever the database and the process go through.

A script is a list of rounds. Before a round the process may be killed (nothing of it is left but
the store), and in a round the database may be away. It is compared with the same rounds of one
process whose database was always there. What can be promised:

1. The story of every finding is whole: each stored transition begins where the last one ended, so
   that nothing opens twice or ends twice, and it is open of one cluster id at a time. Always.
2. While no process was killed with rounds that waited, and none began without its memory, nothing
   differs at all: the same transitions at the same times, the same open findings.
3. Otherwise transitions may be missing: what only a killed process knew is gone, and one that began
   without its memory did not see what ended. But as soon as every subject has been judged once more
   with the database there, the same findings are open.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from rules.catalogue.all_rules import Judged
from rules.errors import StoreError
from rules.facts.snapshot import Snapshot
from rules.open_findings import Change, Identity, OpenFinding, Step
from rules.verdict import Kind, Verdict
from service.metrics.exposition import Exposition
from service.observe.cluster_reader import Scope
from service.observe.watch import WatchedRound, Watcher
from service.rounds.latest import Latest, ServiceState
from service.rounds.persistence import LAST_RETRY_SECONDS, PersistenceState, RoundWriter
from service.rounds.pipeline import Pipeline
from tests.factories import CLUSTER_ID, NOON, at, snapshot
from tests.fakes import MemoryStore
from tests.integration.storage.given import judged

SUBJECTS: Final = ("a", "b")
INTERVAL: Final = LAST_RETRY_SECONDS + 1  # every round finds the next try due
AWAY: Final = StoreError("the database is away", retryable=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One round of a script."""

    verdicts: Mapping[str, Verdict]  # a subject that is not there is not judged
    sees: bool = True  # False: no broker answered, and whatever is judged is judged blindly
    is_complete: bool = True
    has_database: bool = True
    is_after_kill: bool = False


class ScriptedWatcher(Watcher):
    """Judges what the script says."""

    def __init__(self, kind: Kind) -> None:
        super().__init__(
            "default", _Nothing(), Scope(), utc_now=lambda: NOON, monotonic=lambda: 0.0
        )
        self.kind = kind
        self.turn = Turn(verdicts={})
        self.seconds = 0.0

    def make_round(self, *, knows_positions: bool = True) -> WatchedRound:  # noqa: ARG002 - a port
        now, turn = at(self.seconds), self.turn
        seen = snapshot(taken_at=now, placement_complete=turn.is_complete)
        return WatchedRound(
            at=now,
            snapshot=seen if turn.sees else None,
            judged=Judged(judgements=(judged(turn.verdicts, self.kind),)),
        )


class _Nothing:
    def read(self, scope: Scope) -> Snapshot:
        raise NotImplementedError(scope)


class Play:
    """Plays a script over one store."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.store = MemoryStore()
        self.number = 0
        self._begin()

    def _begin(self) -> None:
        self.watcher = ScriptedWatcher(self.kind)
        self.round_writer = RoundWriter(
            self.store,
            "default",
            monotonic=lambda: self.number * INTERVAL,
            waiting_rounds=1000,
        )
        first = ServiceState(
            cluster="default", version="0", started_at=NOON, interval_seconds=INTERVAL
        )
        self.pipeline = Pipeline(
            watcher=self.watcher,
            round_writer=self.round_writer,
            exposition=Exposition(),
            latest=Latest(first),
            monotonic=lambda: self.number * INTERVAL,
        )
        self.pipeline.load(is_start=True)

    def play(self, script: Sequence[Turn]) -> None:
        for turn in script:
            self.number += 1
            self.store.fails = None if turn.has_database else AWAY
            if turn.is_after_kill:
                self._begin()
            self.watcher.turn, self.watcher.seconds = turn, self.number * INTERVAL
            self.pipeline.make_round()

    @property
    def stories(self) -> dict[tuple[str, Identity], list[tuple[datetime, Change]]]:
        """Return the stored transitions by cluster id and finding, with their times."""
        told = defaultdict(list)
        for one in self.store.rounds:
            for change in one.changes:
                if change.is_transition:
                    told[one.cluster.cluster_id, change.identity].append((one.at, change))
        return dict(told)

    @property
    def open(self) -> dict[str, Mapping[Identity, OpenFinding]]:
        """Return what the store holds as open, by cluster id."""
        found = self.store.kept("default").open_findings
        return {cluster_id: entries for cluster_id, entries in found.items() if entries}


def lasting(
    open_: Mapping[str, Mapping[Identity, OpenFinding]],
) -> dict[str, dict[Identity, OpenFinding]]:
    """Leave out what moves on without a change, which is stored now and then."""
    return {
        cluster_id: {
            identity: replace(
                row,
                last_judged_at=row.since,
                last_breach_at=row.since if row.kind is Kind.STATE else row.last_breach_at,
                evidence={},
            )
            for identity, row in rows.items()
        }
        for cluster_id, rows in open_.items()
    }


said = st.sampled_from((Verdict.BREACH, Verdict.BREACH, Verdict.OK, Verdict.UNKNOWN, None))
verdicts = st.tuples(*[said] * len(SUBJECTS)).map(
    lambda drawn: {
        name: verdict for name, verdict in zip(SUBJECTS, drawn, strict=True) if verdict is not None
    }
)
either = st.booleans()
mostly = st.sampled_from((True, True, False))
turns = st.builds(
    Turn,
    verdicts=verdicts,
    sees=mostly,
    is_complete=mostly,
    has_database=either,
    is_after_kill=either,
)
decided = st.builds(
    Turn,
    verdicts=st.fixed_dictionaries(
        dict.fromkeys(SUBJECTS, st.sampled_from((Verdict.OK, Verdict.BREACH)))
    ),
)
scripts = st.tuples(st.lists(turns, min_size=3, max_size=14), decided).map(
    lambda drawn: [*drawn[0], drawn[1]]
)
kinds = st.sampled_from(tuple(Kind))


def played(script: Sequence[Turn], kind: Kind) -> Play:
    made = Play(kind)
    made.play(script)
    return made


def unbroken(script: Sequence[Turn], kind: Kind) -> Play:
    """Play the same rounds in one process whose database is always there."""
    return played([replace(turn, has_database=True, is_after_kill=False) for turn in script], kind)


def without_losses(script: Sequence[Turn]) -> list[Turn]:
    """Keep of the kills those after which nothing waited, and before which nothing was away."""
    before = [True, *(turn.has_database for turn in script)]
    return [
        replace(turn, is_after_kill=turn.is_after_kill and turn.has_database and had_database)
        for turn, had_database in zip(script, before, strict=False)
    ]


@given(scripts, kinds)
def test_every_transition_begins_where_the_last_one_ended(script: list[Turn], kind: Kind) -> None:
    for story in played(script, kind).stories.values():
        now: Verdict | None = None
        for _, change in story:
            assert change.before is now, story
            assert (change.step is Step.OPENED) == (now is None), story
            now = None if change.step is Step.ENDED else change.after


@given(scripts, kinds)
def test_no_finding_is_open_twice_at_any_time(script: list[Turn], kind: Kind) -> None:
    made = Play(kind)
    for turn in script:
        made.play([turn])
        assert len(made.open) <= 1, "of one cluster id at a time"


@given(scripts, kinds)
def test_an_outage_or_a_kill_alone_changes_nothing(script: list[Turn], kind: Kind) -> None:
    broken, whole = played(without_losses(script), kind), unbroken(script, kind)
    assert broken.stories == whole.stories
    assert lasting(broken.open) == lasting(whole.open)


@given(scripts)
def test_after_one_more_round_the_same_findings_are_open(script: list[Turn]) -> None:
    broken, whole = played(script, Kind.STATE), unbroken(script, Kind.STATE)
    assert {key: set(found) for key, found in broken.open.items()} == {
        key: set(found) for key, found in whole.open.items()
    }
    assert set(broken.open) <= {CLUSTER_ID}


@given(scripts, kinds)
def test_what_is_shown_is_what_is_stored(script: list[Turn], kind: Kind) -> None:
    made = played(script, kind)
    assert made.round_writer.status.state is PersistenceState.STORED
    assert made.round_writer.status.waiting_rounds == 0
    shown = made.pipeline.open_findings
    assert shown == len(made.open.get(CLUSTER_ID, {}))

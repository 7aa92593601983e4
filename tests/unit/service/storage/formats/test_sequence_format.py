"""Episodes survive a restart, in whatever state they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rules.errors import StoreError
from rules.facts.episode_transactions import NOTHING_KNOWN
from rules.facts.memory import Memory
from rules.facts.sequence_verdicts import Arrival
from rules.sequence.explained import explain_episode
from rules.sequence.reporting import list_newly_reported
from service.storage.formats.checkpoint import FORMAT, Checkpoint, decode, encode
from service.storage.formats.sequence import plain_sequences, sequences_of
from tests.unit.rules.sequence.case_observations import ALONE, of_2
from tests.unit.rules.sequence.cases import CASES
from tests.unit.rules.sequence.stage import play
from tests.unit.rules.sequence.transaction_cases import CASES as TRANSACTIONS
from tests.unit.rules.sequence.transaction_cases import QUIET


def restarted(memory: Memory) -> Memory:
    """Return the memory as a new process reads it."""
    found = decode(encode(Checkpoint(memory=memory)), FORMAT).memory
    assert found is not None
    return found


def comparable(memory: Memory) -> tuple[Any, ...]:
    known = memory.sequences
    watch = known.leaderships
    columns = (watch.epoch, watch.since_us, watch.watched_from, watch.clean_from)
    unreported = known.unreported, known.unreported_us
    return known.open, known.ended, known.changes, unreported, [one.to_list() for one in columns]


@pytest.mark.parametrize("name", CASES)
def test_what_is_remembered_is_read_again(name: str) -> None:
    memory = play(CASES[name].observations)[-1].memory
    assert comparable(restarted(memory)) == comparable(memory)


def test_what_was_dropped_untold_is_read_again() -> None:
    memory = play(CASES["textbook"].observations)[-1].memory
    sequences = replace(memory.sequences, unreported=50, unreported_us=memory.taken_us)
    dropped = replace(memory, sequences=sequences)
    assert comparable(restarted(dropped)) == comparable(dropped)


def test_a_memory_that_tells_of_nothing_dropped_has_dropped_nothing() -> None:
    told = plain_sequences(play([ALONE])[-1].memory.sequences)
    del told["unreported"]
    found = sequences_of(told)
    assert (found.unreported, found.unreported_us) == (0, None)


@pytest.mark.parametrize("name", CASES)
def test_a_restart_after_every_round_changes_no_verdict(name: str) -> None:
    observations = CASES[name].observations
    [stayed] = play(observations)[-1].memory.sequences.episodes
    [found] = play(observations, between=restarted)[-1].memory.sequences.episodes
    assert found == stayed


@pytest.mark.parametrize("name", TRANSACTIONS)
def test_what_became_of_a_transaction_survives_a_restart_after_every_round(name: str) -> None:
    case = TRANSACTIONS[name]
    observations = (QUIET, case.line, *case.rounds)
    [stayed] = play(observations)[-1].memory.sequences.episodes
    [found] = play(observations, between=restarted)[-1].memory.sequences.episodes
    assert found == stayed


def test_an_older_checkpoint_says_nothing_of_transactions_and_more_is_found_out() -> None:
    case = TRANSACTIONS["open-by-its-coordinator"]
    rounds = (QUIET, case.line, *case.rounds)
    [episode] = older(play(rounds)[-1].memory).sequences.open.values()
    assert (episode.transaction, episode.shown.transaction) == (NOTHING_KNOWN, None)
    views = play((*rounds, replace(case.rounds[-1], second=14)), between=older)
    [again] = views[-1].memory.sequences.open.values()
    assert explain_episode(again).evidence["transaction"] == "open"
    assert [list_newly_reported(view) for view in views][-1] == ()


def older(memory: Memory) -> Memory:
    """Return the memory as a process reads it that an older release had stored."""
    kept = plain_sequences(memory.sequences)
    for episode in kept["open"]:
        for name in ("is_investigated", "seen_epoch", "watched_from", "clean_from", "transaction"):
            episode.pop(name, None)
        episode.get("reported", {}).pop("outcome", None)
        for one in (*episode["rejections"], episode.get("told") or {}):
            one.pop("arrival", None)
            one.pop("came", None)
            one.pop("transaction", None)
    read = sequences_of(kept)
    return replace(memory, sequences=replace(read, leaderships=memory.sequences.leaderships))


@pytest.mark.parametrize("name", ["filled", "same-leader-epoch", "textbook", "stale-retry"])
def test_what_an_older_release_stored_is_read_and_not_told_again(name: str) -> None:
    observations = CASES[name].observations
    last = replace(observations[-1], second=20, lines=(), found=())
    read = older(play(observations)[-1].memory)
    arrivals = {
        one.arrival for episode in read.sequences.open.values() for one in episode.rejections
    }
    assert arrivals == {Arrival.ARRIVED if name == "filled" else Arrival.AWAITED}
    views = play((*observations, last), between=older)
    assert [list_newly_reported(view) for view in views][-1] == ()


def test_what_has_ended_is_read_again_and_not_opened_by_a_line_that_comes_late() -> None:
    observations = (
        *CASES["textbook"].observations,
        of_2(4000),
        of_2(4001, lines=CASES["textbook"].observations[1].lines),
    )
    views = play(observations, between=restarted)
    memory = views[-1].memory.sequences
    assert not memory.open
    [ended] = memory.ended
    assert ended.ended_us is not None
    assert ended.verdict.lost_offsets == 24


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param({"open": [{"id": "1"}]}, id="fields-missing"),
        pytest.param({"open": 7}, id="no-list"),
        pytest.param({"changes": [["orders", 0, [{"kind": "other"}]]]}, id="another-word"),
    ],
)
def test_what_is_damaged_is_no_memory(damage: dict[str, Any]) -> None:
    told = plain_sequences(play([ALONE])[-1].memory.sequences) | damage
    with pytest.raises((KeyError, TypeError, ValueError)):
        sequences_of(told)


def test_a_damaged_episode_is_told_as_a_damaged_checkpoint() -> None:
    memory = play(CASES["textbook"].observations)[-1].memory
    [episode] = memory.sequences.open.values()
    bad = replace(episode, first_seen_us=None)  # type: ignore[arg-type]
    sequences = replace(memory.sequences, open={bad.key: bad})
    content = encode(Checkpoint(memory=replace(memory, sequences=sequences)))
    with pytest.raises(StoreError, match="damaged"):
        decode(content, FORMAT)

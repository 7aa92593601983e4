"""What `tidemark loss check` says, and what it never says: that nothing is lost where nothing proves it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pytest

from rules.errors import RequestError
from rules.facts.column import Column, Ragged
from rules.facts.gap import GapCause, GapScope
from rules.facts.identity import TopicPartition
from rules.facts.snapshot import Snapshot
from rules.question import EpochEndQuestion
from service.cli.loss.check import rounds, showing
from service.cli.loss.check.verdicts import Conclusion, conclude
from service.terminal.exit_codes import ExitCode
from tests.factories import (
    at,
    commits,
    epoch_ends,
    gap,
    group,
    offsets,
    partitions,
    snapshot,
    topic_id,
)
from tests.schemas import validate
from tests.unit.service.cli.printing import printed
from tests.unit.service.cli.tx.given import Rounds

NAME: Final = TopicPartition("orders", 0)
ONE: Final = partitions({"orders": 1}, unclean_election_enabled=Column.of([1]))
ALONE: Final = partitions(
    {"orders": 1}, isr=Ragged.of([(1,)]), unclean_election_enabled=Column.of([None])
)
MOVED: Final[dict[str, Any]] = {
    "partitions": partitions(
        {"orders": 1},
        leader=Column.of([2]),
        isr=Ragged.of([(2,)]),
        unclean_election_enabled=Column.of([1]),
    ),
    "offsets": offsets(
        1, last_stable_offset=[80], high_watermark=[80], log_end_offset=[80], leader_epoch=[7]
    ),
}
ANSWERED: Final[dict[str, Any]] = {**MOVED, "epoch_ends": epoch_ends((0, 5, 73))}
READERS: Final[dict[str, Any]] = {
    "groups": (group("billing"),),
    "commits": commits((0, 0, 95), epochs=[5]),
}


def before(**overrides: Any) -> Snapshot:
    return snapshot(
        **{"partitions": ALONE, "offsets": offsets(1), "taken_at": at(-30), **overrides}
    )


def concluded(
    *observations: dict[str, Any],
    earlier: Snapshot | None = None,
    names: Iterable[TopicPartition] = (),
) -> Conclusion:
    source = Rounds(*({"partitions": ONE, **observation} for observation in observations))
    checked = rounds.check(source, earlier, pause=lambda _: None)
    file = None if earlier is None else "before.json"
    return conclude(checked, names=tuple(names), file=file)


def verdict(conclusion: Conclusion) -> tuple[str, str]:
    [partition] = conclusion.partitions
    return str(partition.verdict), partition.reason


def test_a_single_round_proves_no_partition_to_be_whole() -> None:
    conclusion = concluded({})
    assert verdict(conclusion) == ("unknown", "first_observation")
    assert conclusion.exit_code is ExitCode.INCOMPLETE
    text = printed(showing.render(conclusion, is_detailed=False))
    assert "A single round cannot see a loss before it that no group had read" in text
    assert "not complete" in text
    assert "no loss" not in text


def test_a_single_round_finds_what_a_group_had_read() -> None:
    conclusion = concluded({**READERS, **ANSWERED})
    assert conclusion.exit_code is ExitCode.LOST
    assert verdict(conclusion) == ("breach", "read_beyond_epoch_end")
    [[loss]] = [incident["partitions"] for incident in conclusion.incidents]
    assert (loss["class"], loss["at_least_offsets"]) == ("possibly_lost", 95 - 73)
    assert [row["group"] for row in loss["groups_beyond"]] == ["billing"]


def test_an_earlier_round_proves_the_exact_offsets() -> None:
    source = Rounds({**READERS, **MOVED}, {**READERS, **ANSWERED})
    checked = rounds.check(source, before(), pause=lambda _: None)
    [first, [question]] = source.queries
    assert (first, type(question)) == ((), EpochEndQuestion)
    conclusion = conclude(checked, names=[NAME], file="before.json")
    assert (verdict(conclusion), conclusion.exit_code) == (("breach", "lost"), ExitCode.LOST)
    [[loss]] = [incident["partitions"] for incident in conclusion.incidents]
    assert (loss["class"], loss["certain_from"], loss["certain_to"]) == ("committed_lost", 73, 100)
    validate("loss check", conclusion.document)
    [partition] = conclusion.document["partitions"]
    assert (partition["leader_epoch_before"], partition["leader_epoch"]) == (5, 7)
    text = printed(showing.render(conclusion, is_detailed=True))
    assert text.index("1. Keep broker 1 down") < text.index("WHAT IS KNOWN")
    assert "[73, 100) 27 offsets" in text
    assert "100 -> 80" in text


def test_a_commit_that_lay_beyond_the_end_in_the_earlier_round_is_shown_again() -> None:
    beyond: dict[str, Any] = {**READERS, "commits": commits((0, 0, 120), epochs=[4])}
    earlier = before(**beyond)
    conclusion = concluded({**beyond, "epoch_ends": epoch_ends((0, 4, 100))}, earlier=earlier)
    assert conclusion.exit_code is ExitCode.LOST


def test_an_open_transaction_of_the_earlier_round_hides_its_records_from_readers() -> None:
    held = before(offsets=offsets(1, last_stable_offset=[90]))
    conclusion = concluded(MOVED, ANSWERED, earlier=held)
    [[loss]] = [incident["partitions"] for incident in conclusion.incidents]
    assert (loss["certain_offsets"], loss["visible_to_read_committed"]) == (100 - 73, 90 - 73)


@pytest.mark.parametrize(
    ("high_watermark", "said"),
    [(100, ("ok", "nothing_seen_is_missing")), (90, ("unknown", "election_not_known"))],
)
def test_an_isr_that_may_have_shrunk_after_the_earlier_round_leaves_a_doubt(
    high_watermark: int, said: tuple[str, str]
) -> None:
    earlier = before(partitions=ONE, offsets=offsets(1, high_watermark=[high_watermark]))
    moved = {
        "partitions": partitions(
            {"orders": 1}, leader=Column.of([2]), unclean_election_enabled=Column.of([1])
        ),
        "offsets": offsets(1, leader_epoch=[6]),
        "epoch_ends": epoch_ends((0, 5, 100)),
    }
    conclusion = concluded(moved, earlier=earlier)
    assert verdict(conclusion) == said
    is_sure = said[0] == "ok"
    assert conclusion.exit_code is (ExitCode.OK if is_sure else ExitCode.INCOMPLETE)


def test_a_partition_is_ok_if_all_that_was_seen_is_there() -> None:
    conclusion = concluded({}, earlier=before())
    assert verdict(conclusion) == ("ok", "nothing_seen_is_missing")
    assert (conclusion.exit_code, conclusion.errors) == (ExitCode.OK, ())


@pytest.mark.parametrize(
    ("earlier", "observation", "reason"),
    [
        pytest.param({"partitions": partitions({"audit": 1})}, {}, "first_observation", id="new"),
        pytest.param(
            {"partitions": partitions({"orders": 1}, topic_ids=(topic_id("orders", creation=1),))},
            {}, "first_observation", id="created-anew",
        ),
        pytest.param({"offsets": offsets(1, high_watermark=[None])}, {}, "first_observation", id="unseen"),
        pytest.param({}, {"offsets": offsets(1, leader_epoch=[None])}, "not_seen", id="silent"),
        pytest.param({}, MOVED, "not_reported", id="end-not-reported"),
        pytest.param(
            {}, {**MOVED, "epoch_ends": epoch_ends((0, 5, None))}, "epoch_not_in_log", id="no-such-epoch"
        ),
        pytest.param({}, {"offsets": offsets(1, leader_epoch=[4])}, "went_back", id="older-leader"),
        pytest.param(
            {}, {"offsets": offsets(1, high_watermark=[99])}, "went_back", id="lower-watermark"
        ),
        pytest.param(
            {}, {**READERS, "commits": commits((0, 0, 95), epochs=[4])}, "commits_not_compared", id="commits"
        ),
        pytest.param(
            {}, {"partitions": partitions({"orders": 1}, topic_ids=(None,))}, "no_topic_id", id="no-topic-id"
        ),
    ],
)  # fmt: skip
def test_what_is_not_proven_is_unknown_with_its_reason(
    earlier: dict[str, Any], observation: dict[str, Any], reason: str
) -> None:
    conclusion = concluded(observation, earlier=before(**earlier))
    [own] = [each for each in conclusion.partitions if each.name == NAME]
    assert (str(own.verdict), own.reason) == ("unknown", reason)
    assert conclusion.exit_code is ExitCode.INCOMPLETE
    assert conclusion.errors


def test_a_deleted_partition_is_unknown() -> None:
    gone = {"partitions": partitions({"audit": 1}), "offsets": offsets(1)}
    conclusion = concluded(gone, earlier=before(), names=[NAME])
    assert verdict(conclusion) == ("unknown", "subject_gone")
    assert conclusion.missing == ()


def test_a_gap_that_may_hide_a_loss_leaves_no_ok_behind() -> None:
    hidden = gap(scope=GapScope.GROUPS, cause=GapCause.NOT_AUTHORIZED)
    conclusion = concluded({"gaps": (hidden,)}, earlier=before())
    assert conclusion.exit_code is ExitCode.INCOMPLETE
    assert hidden.why in printed(showing.render(conclusion, is_detailed=False))


def test_rounds_are_made_until_nothing_can_be_answered_any_more() -> None:
    moving = gap(scope=GapScope.EPOCHS, cause=GapCause.LEADER_CHANGING)
    denied = gap(scope=GapScope.EPOCHS, cause=GapCause.NOT_AUTHORIZED)
    for observation, made in (
        ({}, 1),
        ({"gaps": (moving,)}, rounds.AT_MOST),
        ({**MOVED, "gaps": (denied,)}, 1),
        (MOVED, rounds.AT_MOST),
    ):
        assert concluded(observation, earlier=before()).checked.rounds == made


def test_a_name_that_is_not_there_is_reported() -> None:
    missing = TopicPartition("orders", 7)
    conclusion = concluded({}, earlier=before(), names=[NAME, missing])
    assert (conclusion.missing, conclusion.exit_code) == ((missing,), ExitCode.NOTHING_MATCHED)


def test_an_earlier_round_of_another_cluster_is_rejected() -> None:
    with pytest.raises(
        RequestError, match="another cluster: its id is B, and the id of this one is"
    ):
        concluded({}, earlier=before(cluster_id="B"))

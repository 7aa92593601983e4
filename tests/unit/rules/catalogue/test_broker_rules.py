"""Case tables of the rules that judge brokers and controllers, and of what follows from a broker that is gone.

To add a case, say in one sentence why it is so. Changing an old one needs an argument.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from rules.catalogue import (
    broker_gone,
    broker_silent,
    partition_offline,
    partition_under_min_isr,
    partition_under_replicated,
)
from rules.facts.brokers import BrokerContact
from rules.facts.column import Column, Ragged
from rules.facts.identity import BrokerId
from rules.facts.partitions import Partitions
from rules.judgement import Finding
from rules.verdict import Severity, Verdict
from tests.factories import broker, partitions
from tests.unit.rules.catalogue.judging import Case, Judge, judged, rounds, view_of

OK, UNKNOWN, BREACH = Verdict.OK, Verdict.UNKNOWN, Verdict.BREACH
HERE = {"brokers": (broker(1), broker(2), broker(3))}
WITHOUT_2 = {"brokers": (broker(1), broker(3))}


def placed(**overrides: Any) -> dict[str, Any]:
    return {"partitions": placement(**overrides)}


def placement(**overrides: Any) -> Partitions:
    return partitions({"orders": 1}, **overrides)


def lists(*brokers: int) -> Ragged:
    return Ragged.of([brokers])


NO_ONE = Column.of([None])
NOT_READ = {"placement_complete": False, "placement_read": False}
REDUNDANCY = WITHOUT_2 | placed(isr=lists(1, 3))
# As brokers with ELR report it: the same broker in two lists.
OFFLINE = WITHOUT_2 | placed(
    leader=NO_ONE, replicas=lists(2), isr=lists(2), last_known_elr=lists(2)
)
OTHERS_COULD_LEAD = WITHOUT_2 | placed(leader=NO_ONE, isr=lists(2, 3))
BELOW = WITHOUT_2 | placed(isr=lists(1, 3), min_insync_replicas=Column.of([3]))
TWO_CAUSES = WITHOUT_2 | placed(isr=lists(1))  # 3 is alive, and out of sync
ONLY_1 = {"brokers": (broker(1),)}
BELOW_WITH_3 = ONLY_1 | placed(isr=lists(1))  # 1 of at least 2
OFFLINE_WITH_3 = ONLY_1 | placed(leader=NO_ONE, isr=lists(2, 3))
UNPLACED = WITHOUT_2 | placed(replicas=lists(1, 3), isr=lists(1, 3))

GONE = [
    Case(id="listed", because="a listed broker is not gone", verdict=OK, reason="registered"),
    Case(
        id="rolling-restart",
        because="each broker of a rolling restart is gone for a minute or two",
        observations=(HERE, REDUNDANCY, REDUNDANCY),
        seconds=120,
        verdict=OK,
        reason="gone_briefly",
    ),
    Case(
        id="gone",
        because="after five minutes it is no restart any more; only redundancy is missing",
        observations=(HERE, REDUNDANCY, REDUNDANCY),
        seconds=300,
        verdict=BREACH,
        reason="replicas_missing",
    ),
    Case(
        id="returned-in-between",
        because="the time begins anew with each absence",
        observations=(REDUNDANCY, HERE, REDUNDANCY),
        seconds=300,
        verdict=OK,
        reason="gone_briefly",
    ),
    Case(
        id="offline",
        because="it alone could lead: as urgent as the partition, after the same time",
        observations=(HERE | placed(replicas=lists(2), isr=lists(2)), OFFLINE, OFFLINE),
        seconds=30,
        verdict=BREACH,
        reason="partitions_offline",
    ),
    Case(
        id="offline-briefly",
        because="it is never more urgent than the partition that it explains",
        observations=(HERE, OFFLINE, OFFLINE),
        seconds=29,
        verdict=OK,
        reason="gone_briefly",
    ),
    Case(
        id="offline-for-another-reason",
        because="broker 3 is there and could lead: something else keeps the partition offline",
        observations=(HERE, OTHERS_COULD_LEAD, OTHERS_COULD_LEAD),
        seconds=90,
        verdict=OK,
        reason="gone_briefly",
    ),
    Case(
        id="below-minimum",
        because="acks=all is rejected because of it",
        observations=(HERE, BELOW, BELOW),
        seconds=60,
        verdict=BREACH,
        reason="partitions_under_min_isr",
    ),
    Case(
        id="below-minimum-with-another",
        because="broker 3 went just now, and the partition was not below its minimum before",
        observations=(REDUNDANCY, REDUNDANCY, BELOW_WITH_3),
        seconds=600,
        verdict=BREACH,
        reason="replicas_missing",
    ),
    Case(
        id="below-minimum-with-another-for-a-minute",
        because="broker 3 has been gone for a minute too",
        observations=(REDUNDANCY, BELOW_WITH_3, BELOW_WITH_3),
        seconds=60,
        verdict=BREACH,
        reason="partitions_under_min_isr",
    ),
    Case(
        id="offline-with-another",
        because="broker 3 could lead until just now",
        observations=(OTHERS_COULD_LEAD, OTHERS_COULD_LEAD, OFFLINE_WITH_3),
        seconds=600,
        verdict=BREACH,
        reason="replicas_missing",
    ),
    Case(
        id="contradicted",
        because="another answer shows it in sync with a leader, so that neither can be believed",
        observations=(HERE, WITHOUT_2, WITHOUT_2),
        seconds=600,
        verdict=UNKNOWN,
        reason="answers_disagree",
    ),
    Case(
        id="in-no-listed-partition",
        because="its replicas may have been moved, or be of a topic that could not be listed",
        observations=(REDUNDANCY, UNPLACED | {"placement_complete": False}),
        seconds=600,
        verdict=UNKNOWN,
        reason="replicas_unknown",
    ),
    Case(
        id="placement-of-an-earlier-round",
        because="nor does an earlier round say which replicas it has now",
        observations=(REDUNDANCY, REDUNDANCY | NOT_READ),
        seconds=600,
        verdict=UNKNOWN,
        reason="replicas_unknown",
    ),
    Case(
        id="nobody",
        because="an answer without any broker came from one",
        observations=(HERE, {"brokers": ()}),
        seconds=600,
        verdict=UNKNOWN,
        reason="none_registered",
    ),
]


def of_broker(judge: Judge, case: Case, broker_id: int = 2) -> Finding:
    judgement = judge(view_of(rounds(case)))
    [place] = judgement.subjects.find([{"cluster": "default", "broker": str(broker_id)}])
    assert place is not None
    return judgement.finding(place)


@pytest.mark.parametrize("case", GONE, ids=lambda case: case.id)
def test_broker_gone(case: Case) -> None:
    said = of_broker(broker_gone.judge, case)
    assert (said.verdict, said.reason) == (case.verdict, case.reason), case.because


def test_only_what_cannot_wait_pages() -> None:
    critical = {
        why for why in broker_gone.Why if broker_gone.RULE.severity_of(why) is Severity.CRITICAL
    }
    pages = {"partitions_offline", "partitions_under_min_isr"}
    assert critical & {case.reason for case in GONE if case.verdict is BREACH} == pages


def test_a_broker_without_replicas_is_no_subject() -> None:
    case = Case(
        id="decommissioned",
        because="its finding ends, as that of a subject that is gone",
        observations=(HERE, REDUNDANCY, UNPLACED),
        seconds=600,
        verdict=OK,
        reason="",
    )
    judgement = broker_gone.judge(view_of(rounds(case)))
    assert judgement.subjects.find([{"cluster": "default", "broker": "2"}]) == [None]


def test_the_finding_says_where_the_broker_was() -> None:
    said = of_broker(broker_gone.judge, next(case for case in GONE if case.id == "offline"))
    assert said.evidence == {
        "gone_ms": 30_000,
        "replicas": 1,
        "offline_partitions": 1,
        "partitions_under_min_isr": 0,
        "address": "127.0.0.1:9092",
        "rack": None,
        "listed_before_ms": 60_000,
    }


def contact(silent: tuple[int, ...], answered: tuple[int, ...]) -> dict[str, Any]:
    ids = {BrokerId(entry): "no answer within 5.0 s" for entry in silent}
    return {"contact": BrokerContact(answered=frozenset(map(BrokerId, answered)), silent=ids)}


SILENT_2, SILENT_ALL = contact((2,), (1, 3)), contact((1, 2, 3), ())
NOT_QUERIED = contact((), (1, 3))
SILENT = [
    Case(id="answers", because="it answered", verdict=OK, reason="answers"),
    Case(
        id="briefly",
        because="a broker that dies is silent until it is fenced",
        observations=(SILENT_2, SILENT_2),
        seconds=119,
        verdict=OK,
        reason="silent_briefly",
    ),
    Case(
        id="silent",
        because="others answer, and it does not",
        observations=(SILENT_2, SILENT_2),
        seconds=120,
        verdict=BREACH,
        reason="silent",
    ),
    Case(
        id="not-queried-in-between",
        because="a round that did not query it neither ends the time nor judges",
        observations=(SILENT_2, NOT_QUERIED, SILENT_2),
        seconds=60,
        verdict=BREACH,
        reason="silent",
    ),
    Case(
        id="not-queried",
        because="nothing is known of a broker that was not queried",
        observations=(SILENT_2, NOT_QUERIED),
        seconds=600,
        verdict=UNKNOWN,
        reason="not_queried",
    ),
    Case(
        id="own-network",
        because="where nobody answers the fault is rather ours",
        observations=(SILENT_ALL, SILENT_ALL),
        seconds=600,
        verdict=UNKNOWN,
        reason="nobody_answers",
    ),
]


@pytest.mark.parametrize("case", SILENT, ids=lambda case: case.id)
def test_broker_silent(case: Case) -> None:
    said = of_broker(broker_silent.judge, case)
    assert (said.verdict, said.reason) == (case.verdict, case.reason), case.because


OUT = placed(isr=lists(1, 2))
UNDER_REPLICATED = [
    Case(id="whole", because="three of three", verdict=OK, reason="in_sync"),
    Case(
        id="restart",
        because="a broker that restarts catches up within minutes",
        observations=(OUT, OUT),
        seconds=599,
        verdict=OK,
        reason="out_of_sync_briefly",
    ),
    Case(
        id="long",
        because="ten minutes are no restart",
        observations=(OUT, OUT),
        seconds=600,
        verdict=BREACH,
        reason="out_of_sync",
    ),
    Case(
        id="no-rounds-for-long",
        because="out of sync before and after two hours that no round saw may be two restarts",
        observations=(OUT, OUT),
        seconds=7200,
        verdict=OK,
        reason="out_of_sync_briefly",
    ),
    Case(
        id="reassigned",
        because="a reassignment adds replicas that are not in sync yet: the time begins anew",
        observations=(OUT, placed(replicas=lists(1, 2, 3, 4))),
        seconds=600,
        verdict=OK,
        reason="out_of_sync_briefly",
    ),
    Case(
        id="unseen",
        because="an ISR that was not read is not judged",
        observations=(OUT, placed(isr=Ragged.of([None]))),
        seconds=600,
        verdict=UNKNOWN,
        reason="isr_unknown",
    ),
    Case(
        id="not-read",
        because="an ISR of an earlier round says nothing of this one, however long it was so before",
        observations=(OUT, OUT, OUT | NOT_READ),
        seconds=600,
        verdict=UNKNOWN,
        reason="isr_unknown",
    ),
    Case(
        id="not-read-in-between",
        because="nor does it prove that nothing changed in between",
        observations=(OUT, OUT | NOT_READ, OUT | NOT_READ, OUT),
        seconds=300,
        verdict=OK,
        reason="out_of_sync_briefly",
    ),
    Case(
        id="gone",
        because="the only missing replica is on a broker that is gone",
        observations=(REDUNDANCY, REDUNDANCY),
        seconds=600,
        verdict=BREACH,
        reason="brokers_gone",
    ),
    Case(
        id="two-causes",
        because="broker 3 is there and out of sync: broker 2 does not explain all of it",
        observations=(TWO_CAUSES, TWO_CAUSES),
        seconds=600,
        verdict=BREACH,
        reason="out_of_sync",
    ),
]


@pytest.mark.parametrize("case", UNDER_REPLICATED, ids=lambda case: case.id)
def test_partition_under_replicated(case: Case) -> None:
    said = judged(partition_under_replicated.judge, case)
    assert (said.verdict, said.reason) == (case.verdict, case.reason), case.because


@pytest.mark.parametrize(
    ("judge", "seen", "reason"),
    [
        (partition_offline.judge, OFFLINE, "brokers_gone"),
        (partition_offline.judge, OTHERS_COULD_LEAD, "no_leader"),
        (partition_under_min_isr.judge, BELOW, "brokers_gone"),
        (partition_under_min_isr.judge, TWO_CAUSES, "below_minimum"),
    ],
)
def test_findings_of_partitions_name_the_broker_that_is_gone(
    judge: Judge, seen: dict[str, Any], reason: str
) -> None:
    case = Case(id="", because="", observations=(HERE, seen, seen), verdict=BREACH, reason=reason)
    said = judged(judge, case)
    assert (said.verdict, said.reason) == (BREACH, reason)
    row = {
        "broker": 2,
        "address": "127.0.0.1:9092",
        "gone_ms": timedelta(seconds=15) // timedelta(milliseconds=1),
    }
    assert said.evidence["gone_brokers"] == [row]


@pytest.mark.parametrize("seen", [HERE, OFFLINE, BELOW, OTHERS_COULD_LEAD])
@pytest.mark.parametrize("judge", [partition_offline.judge, partition_under_min_isr.judge])
def test_placement_of_an_earlier_round_is_not_judged(judge: Judge, seen: dict[str, Any]) -> None:
    case = Case(
        id="",
        because="",
        observations=(seen, seen | NOT_READ),
        verdict=UNKNOWN,
        reason="",
    )
    assert judged(judge, case).verdict is UNKNOWN

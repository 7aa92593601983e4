"""Members of 1,000 groups: what they add to a round, in processor time; stats are printed.

The answers are prepared, so that what is measured is reading them, building the columns of owners and
advancing the memory. Each group has 5 members with 10 partitions each.
"""

from __future__ import annotations

from dataclasses import replace
from time import process_time
from typing import Any, Final

import numpy as np
from kio.schema.errors import ErrorCode

from collectors.groups import GroupReader
from collectors.wire.api import DESCRIBE_GROUPS, LIST_GROUPS
from rules.facts.member_memory import MemberMemory, advance_members
from rules.facts.members import AssignmentBuilder
from rules.facts.partitions import PartitionIndex
from rules.owners import owners_evidence
from service.metrics.process import seldom_collected
from tests.factories import broker, described, member, snapshot
from tests.unit.collectors.fake_pool import session_of
from tests.unit.collectors.test_groups import listing
from tests.unit.collectors.test_members import assigned
from tests.unit.collectors.wire.messages import NO_THROTTLE, answer, part

GROUPS: Final = 1000
MEMBERS: Final = 5
OWNED: Final = 10
TOPICS: Final = 200
ROUND_US: Final = 15_000_000


@seldom_collected()  # as the service does
def test_members_of_a_thousand_groups() -> None:
    index = PartitionIndex.of({f"topic-{number}": 50 for number in range(TOPICS)})
    whole = _answer(frozenset())
    rounds = {
        "first": whole,
        "unchanged": whole,
        "one group changed": _answer(frozenset({3})),
        "and back": whole,
        "all groups changed": _answer(frozenset(range(GROUPS))),
        "all back": whole,
        "unchanged again": whole,
    }
    listed = listing(*((_name(number), "Stable", "classic") for number in range(GROUPS)))
    reader, builder, memory = GroupReader(), AssignmentBuilder(), MemberMemory()
    rows = 0
    for number, (name, body) in enumerate(rounds.items()):
        first = broker(1)
        answers: Any = {(first, LIST_GROUPS): listed, (first, DESCRIBE_GROUPS): body}
        session = session_of(first, answers=answers)
        begin = process_time()
        groups = reader.collect(session, None)
        has_read = process_time()
        rows = len(builder.build(groups, index).row)
        memory = advance_members(groups, number * ROUND_US, memory, is_complete=True)
        spent = process_time()
        print(
            f"\n{name}: {1000 * (has_read - begin):.1f} ms to read {len(body):,} bytes, "
            f"{1000 * (spent - has_read):.1f} ms for owners and memory"
        )
        assert session.gaps == []
    assert rows == GROUPS * MEMBERS * OWNED
    assert len(memory.history_of(_name(3)).rebalances) == 4


@seldom_collected()
def test_owners_in_the_findings_of_a_thousand_groups() -> None:
    """Each finding names the owners of ten partitions."""
    groups = tuple(
        replace(
            described(*(member(f"m-{place}", *_owned(place)) for place in range(MEMBERS))),
            group_id=_name(number),
        )
        for number in range(GROUPS)
    )
    index = PartitionIndex.of({"orders": MEMBERS * OWNED})
    seen = replace(snapshot(groups=groups), assignments=AssignmentBuilder().build(groups, index))
    shown = np.arange(OWNED)
    begin = process_time()
    for group in range(GROUPS):
        rows = owners_evidence(seen, np.full(OWNED, group), shown)
        assert rows[0]["member_id"] == "m-0"
    spent = process_time() - begin
    print(f"\n{GROUPS * OWNED:,} owners in findings: {1000 * spent:.1f} ms")
    assert spent < 1


def _owned(place: int) -> range:
    return range(place * OWNED, place * OWNED + OWNED)


def _name(number: int) -> str:
    return f"group-{number:04}"


def _answer(reduced: frozenset[int]) -> bytes:
    """Return the description of all groups; the reduced ones lack their last member."""
    group_member = part(DESCRIBE_GROUPS, 5, "DescribedGroupMember")
    described_group = part(DESCRIBE_GROUPS, 5, "DescribedGroup")
    groups = tuple(
        described_group(
            error_code=ErrorCode(0),
            group_id=_name(number),
            group_state="Stable",
            protocol_type="consumer",
            protocol_data="range",
            members=tuple(
                group_member(
                    member_id=f"client-{place}-0123456789abcdef0123456789abcdef",
                    group_instance_id=None,
                    client_id=f"client-{place}",
                    client_host="/127.0.0.1",
                    member_metadata=bytes(60),
                    member_assignment=assigned({f"topic-{number % TOPICS}": tuple(_owned(place))}),
                )
                for place in range(MEMBERS - (number in reduced))
            ),
        )
        for number in range(GROUPS)
    )
    return answer(DESCRIBE_GROUPS, 5, throttle_time=NO_THROTTLE, groups=groups)

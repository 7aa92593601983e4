"""Members: who owns what by the answers, and what stays unknown."""

from __future__ import annotations

import io
import struct
from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.consumer_protocol_assignment.v3 import data
from kio.serial import entity_writer

from collectors.members import assignor_of, members_of
from collectors.wire.codec import UnreadableError
from collectors.wire.consumer_protocol import read_assignment
from rules.facts.groups import GroupType


def assigned(topics: dict[str, tuple[int, ...]]) -> bytes:
    """Return what a leader assigns, as the codec library writes it."""
    buffer = io.BytesIO()
    parts = tuple(
        data.TopicPartition(topic=name, partitions=numbers)  # type: ignore[arg-type]
        for name, numbers in topics.items()
    )
    message = data.ConsumerProtocolAssignment(assigned_partitions=parts, user_data=b"sticky")
    entity_writer(data.ConsumerProtocolAssignment)(buffer, message)
    return struct.pack(">h", 3) + buffer.getvalue()


def classic(assignment: bytes, **overrides: Any) -> SimpleNamespace:
    """Return a described classic group of one member."""
    member = SimpleNamespace(
        member_id="m-1",
        group_instance_id="pod-0",
        client_id="billing-a",
        client_host="/10.0.0.7",
        member_assignment=assignment,
    )
    described = {
        "group_state": "Stable",
        "protocol_type": "consumer",
        "protocol_data": "range",
        "members": (member,),
    }
    return SimpleNamespace(**(described | overrides))


def test_a_classic_assignment_is_read_as_its_leader_wrote_it() -> None:
    described = classic(assigned({"orders": (0, 2), "päd 1": (5,)}))
    (member,) = members_of(described, GroupType.CLASSIC)
    assert member.assignment == (("orders", (0, 2)), ("päd 1", (5,)))
    assert (member.host, member.instance_id, member.epoch) == ("10.0.0.7", "pod-0", None)
    assert assignor_of(described) == "range"


@pytest.mark.parametrize(
    ("overrides", "body", "expected"),
    [
        ({}, b"", ()),  # the leader left it out
        ({"group_state": "PreparingRebalance"}, b"", None),  # not reported
        ({"group_state": "CompletingRebalance"}, b"", None),
        ({"protocol_type": "connect"}, b"\0\1whatever", None),  # no partitions
        ({}, b"\0\0\0\0\0\7", None),  # not readable
    ],
)
def test_an_assignment_that_is_not_reported_is_not_known(
    overrides: dict[str, Any], body: bytes, expected: object
) -> None:
    (member,) = members_of(classic(body, **overrides), GroupType.CLASSIC)
    assert member.assignment == expected


@pytest.mark.parametrize("cut", range(1, len(assigned({"orders": (0, 2)})) - 10))
def test_a_cut_assignment_is_rejected(cut: int) -> None:
    with pytest.raises(UnreadableError):
        read_assignment(assigned({"orders": (0, 2)})[:cut])


def test_an_assignment_that_announces_more_than_it_holds_is_rejected_before_it_is_read() -> None:
    with pytest.raises(UnreadableError, match="announces 2147483647 elements"):
        read_assignment(b"\0\0\x7f\xff\xff\xff" + bytes(100))


def test_a_member_whose_broker_assigns_owns_what_it_has_and_not_what_it_will_get() -> None:
    topic = SimpleNamespace(topic_name="orders", partitions=(1,))
    target = SimpleNamespace(topic_name="orders", partitions=(1, 2))
    member = SimpleNamespace(
        member_id="m-2",
        instance_id=None,
        client_id="billing-b",
        client_host="/10.0.0.8",
        member_epoch=4,
        assignment=SimpleNamespace(topic_partitions=(topic,)),
        target_assignment=SimpleNamespace(topic_partitions=(target,)),
    )
    described = SimpleNamespace(
        group_state="Reconciling", assignor_name="uniform", members=[member]
    )
    (read,) = members_of(described, GroupType.CONSUMER)
    assert (read.assignment, read.epoch) == ((("orders", (1,)),), 4)
    assert assignor_of(described) == "uniform"

"""Collects the groups of a cluster: their type, state and members.

Every broker lists the groups that it coordinates (ListGroups, KIP-518 states, KIP-848 types). One that
was frozen briefly lists groups that it lost long ago, and would answer with their old commits: see
`collectors/coordinators.py`. Each type has a describe request of its own; the wrong one is answered
with "Dead" and an error, which must not be taken for a dead group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from collectors.coordinators import choose, is_dead
from collectors.members import Description, Descriptions
from collectors.naming import chunks, grouped, summarize
from collectors.placement import Pattern
from collectors.session import EncodedRequests, Request, Response, Session, body_of
from collectors.state_topic import THROTTLE_BYTES, PlacementOf
from collectors.translate import failure_of
from collectors.wire import codec
from collectors.wire.api import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_GROUPS,
    LIST_GROUPS,
    SHARE_GROUP_DESCRIBE,
    STREAMS_GROUP_DESCRIBE,
    Api,
)
from collectors.wire.failure import Failure
from rules.facts.gap import GapCause, GapScope
from rules.facts.groups import Group, GroupType
from rules.facts.identity import CONSUMER_OFFSETS, Broker, BrokerId

DESCRIBED_BY: Final = {
    GroupType.CLASSIC: DESCRIBE_GROUPS,
    GroupType.CONSUMER: CONSUMER_GROUP_DESCRIBE,
    GroupType.SHARE: SHARE_GROUP_DESCRIBE,
    GroupType.STREAMS: STREAMS_GROUP_DESCRIBE,
}
_TYPES: Final = {str(group_type): group_type for group_type in GroupType}
AT_ONCE: Final = 2000  # groups in one request: an answer carries the assignment of every member


@dataclass(frozen=True, slots=True)
class _Batch:
    """The groups of one type on one coordinator: one request."""

    coordinator: Broker
    api: Api
    groups: tuple[Group, ...]

    @property
    def request(self) -> Request:
        ids = tuple(group.group_id for group in self.groups)
        field = "groups" if self.api is DESCRIBE_GROUPS else "group_ids"
        fields: dict[str, Any] = {field: ids, "include_authorized_operations": False}
        return Request(self.coordinator, self.api, body_of(self.api, **fields))


@dataclass(frozen=True, slots=True)
class _Listing:
    """What the brokers listed, and what follows from it."""

    said: tuple[object, ...]  # the answers, and what else it depends on
    groups: Mapping[str, Group]  # by name
    batches: tuple[_Batch, ...]


@dataclass(slots=True)
class GroupReader:
    """Lists and describes groups; what the brokers answer as in the last round is not read anew."""

    _offsets_topic: PlacementOf = field(default_factory=lambda: PlacementOf(CONSUMER_OFFSETS))
    _by_broker: dict[BrokerId, tuple[bytes, tuple[Group, ...]]] = field(default_factory=dict)
    _listing: _Listing | None = None  # None: it had gaps
    _answers: tuple[bytes, ...] | None = None  # to its batches, likewise
    _groups: tuple[Group, ...] = ()
    _descriptions: dict[str, Description] = field(default_factory=dict)
    _requests: EncodedRequests = field(default_factory=EncodedRequests)

    def collect(self, session: Session, name_pattern: Pattern | None) -> tuple[Group, ...]:
        """List and describe the groups whose whole name matches `name_pattern`, ordered by name.

        A group that cannot be described keeps the fields of its listing and is a gap.
        """
        last = self._listing
        listing = self._list(session, name_pattern)
        names = [tuple(group.group_id for group in batch.groups) for batch in listing.batches]
        responses = self._requests.exchange(
            session, [batch.request for batch in listing.batches], names
        )
        answers = _contents(responses)
        if listing is last and answers is not None and answers == self._answers:
            return self._groups
        groups, gaps = dict(listing.groups), len(session.gaps)
        descriptions = Descriptions(before=self._descriptions)
        for batch, response in zip(listing.batches, responses, strict=True):
            _take_reply(session, groups, batch, response, descriptions)
        self._descriptions = descriptions.now
        self._groups = tuple(groups[name] for name in sorted(groups))
        self._answers = answers if len(session.gaps) == gaps else None
        return self._groups

    def _list(self, session: Session, name_pattern: Pattern | None) -> _Listing:
        """Return the groups, each with the broker that coordinates it."""
        requests = [
            Request(broker, LIST_GROUPS, body_of(LIST_GROUPS)) for broker in session.brokers
        ]
        # After the listings, so that a broker that has lost a group meanwhile is not its coordinator.
        responses = session.exchange([*requests, *self._offsets_topic.requests(session)])
        placement = self._offsets_topic.take(responses[len(requests) :])
        responses = responses[: len(requests)]
        said = session.brokers, name_pattern, placement, _contents(responses)
        if self._listing is not None and self._listing.said == said:
            return self._listing
        gaps = len(session.gaps)
        listings = self._read_listings(session, responses, name_pattern)
        groups = choose(session, listings, placement)
        listing = _Listing(said, groups, tuple(_batches(session, list(groups.values()))))
        self._listing = listing if len(session.gaps) == gaps else None
        return listing

    def _read_listings(
        self, session: Session, responses: Sequence[Response], name_pattern: Pattern | None
    ) -> dict[str, list[Group]]:
        """Return by name how each broker lists a group."""
        by_broker: dict[BrokerId, tuple[bytes, tuple[Group, ...]]] = {}
        listings: dict[str, list[Group]] = {}
        for response in responses:
            broker = response.request.broker
            groups = self._read_listing(response)
            if isinstance(groups, Failure):
                what = f"groups coordinated by broker {broker.broker_id}"
                session.add_gap(GapScope.GROUPS, what, groups, broker_id=broker.broker_id)
                continue
            by_broker[broker.broker_id] = _content(response), groups
            for group in groups:
                if name_pattern is None or name_pattern.fullmatch(group.group_id):
                    listings.setdefault(group.group_id, []).append(group)
        self._by_broker = by_broker
        return listings

    def _read_listing(self, response: Response) -> tuple[Group, ...] | Failure:
        content, groups = self._by_broker.get(response.request.broker.broker_id, (b"", ()))
        if groups and response.failure is None and content == _content(response):
            return groups
        answer = response.read_without_error()
        if isinstance(answer, Failure):
            return answer
        return tuple(_decode_listing(entry, response.request.broker) for entry in answer.groups)


def _content(response: Response) -> bytes:
    """Return an answer without the one part that changes although nothing has changed."""
    return bytes(memoryview(response.body)[THROTTLE_BYTES:])


def _contents(responses: Sequence[Response]) -> tuple[bytes, ...] | None:
    """Return the contents of answers; None if one is missing."""
    if any(response.failure is not None for response in responses):
        return None
    return tuple(map(_content, responses))


def _decode_listing(entry: Any, coordinator: Broker) -> Group:
    # Before Kafka 3.8 an answer names no type: all groups were classic then.
    named = getattr(entry, "group_type", GroupType.CLASSIC).lower()
    return Group(
        group_id=entry.group_id,
        group_type=_TYPES.get(named, GroupType.UNKNOWN),
        state=getattr(entry, "group_state", None) or None,
        member_count=None,
        coordinator=coordinator.broker_id,
        protocol_type=entry.protocol_type,
    )


def _batches(session: Session, groups: Sequence[Group]) -> list[_Batch]:
    by_type = grouped(((group.coordinator, group.group_type), group) for group in groups)
    batches: list[_Batch] = []
    for (broker_id, group_type), members in by_type.items():
        broker = session.broker(broker_id)
        if broker is None:
            continue
        if group_type not in DESCRIBED_BY:
            failure = Failure(GapCause.UNSUPPORTED, "their type is newer than Tidemark knows")
            session.add_gap(GapScope.MEMBERS, _members(members), failure)
            continue
        api = DESCRIBED_BY[group_type]
        batches += [_Batch(broker, api, tuple(part)) for part in chunks(members, AT_ONCE)]
    return batches


def _members(groups: Sequence[Group]) -> str:
    return f"members of {summarize([group.group_id for group in groups], 'group')}"


def _take_reply(
    session: Session,
    groups: dict[str, Group],
    batch: _Batch,
    response: Response,
    descriptions: Descriptions,
) -> None:
    answer = response.read()
    if isinstance(answer, Failure):
        broker_id, what = batch.coordinator.broker_id, _members(batch.groups)
        session.add_gap(GapScope.MEMBERS, what, answer, broker_id=broker_id)
        return
    for described in answer.groups:
        _take(session, groups, described, batch.coordinator, descriptions)


def _take(
    session: Session,
    groups: dict[str, Group],
    described: Any,
    coordinator: Broker,
    descriptions: Descriptions,
) -> None:
    name: str = described.group_id
    if name not in groups:
        return  # the request did not name this group
    if groups[name].state is None and is_dead(described):
        del groups[name]  # another broker alone listed it, and does not coordinate it
        why = f"{coordinator}, its coordinator, does not know it, and another broker lists it"
        failure = Failure(GapCause.COORDINATOR_MOVING, why)
        session.add_gap(GapScope.COMMITS, f"commits of group {name}", failure, group=name)
        return
    if int(described.error_code) != codec.NO_ERROR:
        failure = failure_of(
            int(described.error_code),
            coordinator,
            needs=f"DESCRIBE on Group {name}",
            message=getattr(described, "error_message", None),
        )
        session.add_gap(GapScope.MEMBERS, f"members of group {name}", failure, group=name)
        return
    groups[name] = descriptions.group_of(groups[name], described)


def by_coordinator(
    session: Session, groups: Sequence[Group], accept: Callable[[Group], bool]
) -> list[tuple[Broker, list[Group]]]:
    """Sort the accepted groups by the broker that coordinates them."""
    by_id = grouped((group.coordinator, group) for group in groups if accept(group))
    pairs = [(session.broker(broker_id), members) for broker_id, members in by_id.items()]
    return [(broker, members) for broker, members in pairs if broker is not None]

"""Finds which of the needed permissions we have, by requests that need them and change nothing.

No request returns our own permissions, and brokers silently leave out of their lists what we may not
see. But a broker that is given a name checks the permission before it checks whether the name exists: so
names are made up, one of each kind that the ACLs distinguish, and tried beside some that exist. It works
on an empty cluster, for super users, client certificates and denials alike, and on every broker, as each
decides for itself. An authorizer decides by operation and resource, never by request: one request stands
for all that need the same permission.
DESCRIBE on Cluster is tried by reading the ACLs, which each broker answers by itself: DescribeQuorum is passed on
to the active controller, and without one brokers answer nothing behind it.
Without DESCRIBE on Cluster the ACLs cannot be read: one name is made up then, and a denial of a single name
that is not listed would not be noticed.
Source: KIP-140 and KIP-290 (patterns), `KafkaApis` of the broker (order of the checks).
"""

from __future__ import annotations

import string
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, assert_never

from collectors.name_scope import EVERY, NameScope
from collectors.permission_requests import attempt
from collectors.session import Request, Session
from collectors.translate import left_out
from collectors.visibility import MADE_UP, PREFIXED, SECURITY_DISABLED, ids_to_try, patterns_body
from collectors.wire import codec
from collectors.wire.api import DESCRIBE_ACLS
from collectors.wire.failure import Failure
from rules.facts.permissions import NEEDED, NeededPermission, Operation, ResourceType

MAX_EXISTING: Final = 200  # names that exist, of each kind: those that ACLs spell out come on top
_DENIED: Final = frozenset(
    {29, 30, 31, 53}
)  # TOPIC_, GROUP_, CLUSTER_, TRANSACTIONAL_ID_AUTHORIZATION_FAILED
_ANY_TYPE: Final = 1
_TYPES: Final = {ResourceType.TOPIC: 2, ResourceType.GROUP: 3, ResourceType.TRANSACTIONAL_ID: 5}
NO_BROKER: Final = "no broker could be queried"
_LETTERS: Final = string.ascii_letters + string.digits  # every kind of name may have these


class Outcome(StrEnum):
    """What the brokers answered."""

    ALLOWED = "allowed"
    DENIED = "denied"
    NOT_TRIED = "not_tried"  # no usable answer: `why` has the reason


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionCheck:
    """The outcome for one needed permission, over all brokers."""

    needed: NeededPermission
    scope: NameScope  # what an ACL has to cover
    outcome: Outcome
    denied: tuple[str, ...] = ()  # names that exist, or that an ACL spells out, and that are denied
    # Whether only such names are denied, by ACLs of their own, and all others allowed: a grant does not help.
    is_denial: bool = False
    why: str | None = None  # who denied it, or why it could not be tried


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """All outcomes, and how certain they are."""

    checks: tuple[PermissionCheck, ...]
    has_authorizer: bool | None  # None: not known
    reads_acls: bool  # whether each kind of name that the ACLs distinguish was tried


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What is observed: which names, and some of those that exist."""

    topics: NameScope = field(default_factory=NameScope)
    groups: NameScope = field(default_factory=NameScope)
    existing_topics: Sequence[str] = ()
    existing_groups: Sequence[str] = ()

    def scope_of(self, needed: NeededPermission) -> NameScope:
        """Return what an ACL for a permission has to cover."""
        if needed.name is not None:
            return NameScope(name=needed.name)
        match needed.resource:
            case ResourceType.TOPIC:
                return self.topics
            case ResourceType.GROUP:
                return self.groups
            case ResourceType.CLUSTER | ResourceType.TRANSACTIONAL_ID:
                return NameScope()
            case _:
                assert_never(needed.resource)

    def existing(self, resource: ResourceType) -> list[str]:
        """Return some names that exist, spread over the list."""
        of_type = {
            ResourceType.TOPIC: self.existing_topics,
            ResourceType.GROUP: self.existing_groups,
        }
        names = of_type.get(resource, ())
        return list(names[:: max(1, -(-len(names) // MAX_EXISTING))])


@dataclass(frozen=True, slots=True)
class _Acls:
    """The patterns of all brokers' ACLs; None: they may not be read, or no broker answered."""

    patterns: tuple[Any, ...] | None
    has_authorizer: bool | None
    is_denied: bool = False
    why: str = "no usable answer to DescribeAcls"  # they could not be read


def check_permissions(session: Session, observed: Observed) -> Permissions:
    """Try every needed permission on every broker that can be queried."""
    acls = _read_acls(session)
    checks = tuple(_check(session, needed, observed, acls) for needed in NEEDED)
    return Permissions(
        checks=checks, has_authorizer=acls.has_authorizer, reads_acls=acls.patterns is not None
    )


def _read_acls(session: Session) -> _Acls:
    requests = [
        Request(b, DESCRIBE_ACLS, patterns_body(_ANY_TYPE)) for b in session.ready_brokers()
    ]
    read = [response.read() for response in session.exchange(requests)]
    answers = [answer for answer in read if not isinstance(answer, Failure)]
    failures = [answer for answer in read if isinstance(answer, Failure)]
    codes = {int(answer.error_code) for answer in answers}
    if codes & _DENIED:
        return _Acls(None, has_authorizer=True, is_denied=True)
    if failures:
        return _Acls(None, None, why=failures[0].why)
    if not answers:
        return _Acls(None, None, why=NO_BROKER)
    if codes == {SECURITY_DISABLED}:
        return _Acls((), has_authorizer=False)
    if not codes <= {codec.NO_ERROR, SECURITY_DISABLED}:
        return _Acls(None, None)
    return _Acls(
        tuple(each for answer in answers for each in answer.resources), has_authorizer=True
    )


def _check(
    session: Session, needed: NeededPermission, observed: Observed, acls: _Acls
) -> PermissionCheck:
    scope = observed.scope_of(needed)
    if needed.operation is Operation.DESCRIBE_CONFIGS and needed.resource is ResourceType.CLUSTER:
        return _check_broker_configs(session, needed)
    if needed.resource is ResourceType.CLUSTER:
        return _check_cluster(needed, acls)
    existing = [] if needed.name else observed.existing(needed.resource)
    names = _names_to_try(needed.resource, scope, existing, acls)
    if names is None:
        why = "more ACL patterns than names that are tried"
        return PermissionCheck(needed=needed, scope=scope, outcome=Outcome.NOT_TRIED, why=why)
    return _outcome(needed, scope, _send(session, needed, names))


@dataclass(slots=True)
class _Answers:
    """What the brokers answered about names; the first stands for all that no ACL tells apart."""

    names: Sequence[str]
    brokers: int
    denied: dict[str, list[str]] = field(default_factory=dict)  # by name, which brokers deny it
    failures: list[Failure] = field(default_factory=list)


def _send(session: Session, needed: NeededPermission, names: Sequence[str]) -> _Answers:
    brokers = session.ready_brokers()
    tried = attempt(needed, names)
    answers = _Answers(names, len(brokers))
    responses = session.exchange([Request(broker, tried.api, tried.build) for broker in brokers])
    for broker, response in zip(brokers, responses, strict=True):
        answer = response.read_without_error()
        if isinstance(answer, Failure):
            answers.failures.append(answer)
            continue
        codes = tried.codes(answer)
        if not codes.keys() >= set(names):
            answers.failures.append(left_out(broker))
        for name in names:
            if codes.get(name) in _DENIED:
                answers.denied.setdefault(name, []).append(str(broker))
    return answers


def _outcome(needed: NeededPermission, scope: NameScope, answers: _Answers) -> PermissionCheck:
    if answers.denied:
        by = sorted({broker for some in answers.denied.values() for broker in some})
        return PermissionCheck(
            needed=needed,
            scope=scope,
            outcome=Outcome.DENIED,
            denied=() if scope.is_single else _shown(answers.denied),
            is_denial=not scope.is_single and answers.names[0] not in answers.denied,
            why=f"denied by {', '.join(by)} alone" if len(by) < answers.brokers else None,
        )
    if answers.failures or not answers.brokers:
        failures = answers.failures
        why = failures[0].why if failures else NO_BROKER
        return PermissionCheck(needed=needed, scope=scope, outcome=Outcome.NOT_TRIED, why=why)
    return PermissionCheck(needed=needed, scope=scope, outcome=Outcome.ALLOWED)


def _shown(names: Iterable[str]) -> tuple[str, ...]:
    """Return denied names; of one that was made up for a prefix the prefix, of all others nothing."""
    parts = (name.partition(MADE_UP) for name in names)
    shown = (
        head if not mark else f"{head[:-1]}*" for head, mark, tail in parts if tail or not mark
    )
    return tuple(sorted(set(shown) - {EVERY}))


def _check_cluster(needed: NeededPermission, acls: _Acls) -> PermissionCheck:
    if acls.is_denied:
        outcome, why = Outcome.DENIED, None
    elif acls.patterns is None:
        outcome, why = Outcome.NOT_TRIED, acls.why
    else:
        outcome, why = Outcome.ALLOWED, None
    return PermissionCheck(needed=needed, scope=NameScope(), outcome=outcome, why=why)


def _check_broker_configs(session: Session, needed: NeededPermission) -> PermissionCheck:
    """Query every broker for the settings of the same one: it checks the permission first."""
    names = [str(broker.broker_id) for broker in session.ready_brokers()[:1]]
    return replace(_outcome(needed, NameScope(), _send(session, needed, names)), denied=())


def _names_to_try(
    resource: ResourceType, scope: NameScope, existing: Iterable[str], acls: _Acls
) -> list[str] | None:
    """Return the name that stands for all others, then those that ACLs tell apart, then existing ones."""
    if scope.is_single:
        return [scope.name]
    stands_for_all = f"{scope.prefix}{uuid.uuid4().hex}{MADE_UP}"
    if acls.patterns is None:
        return [stands_for_all, *existing]
    own = [
        entry
        for entry in acls.patterns
        if int(entry.resource_type) == _TYPES[resource]
        and str(entry.resource_name).startswith(scope.prefix)
    ]
    kinds = ids_to_try([*own, _Prefix(scope.prefix)] if scope.prefix else own, _LETTERS)
    if kinds is None:
        return None
    of_scope = [name for name in kinds if scope.covers(name)]
    general = next((name for name in of_scope if _is_general(name, scope, own)), stands_for_all)
    return list(dict.fromkeys([general, *of_scope, *existing]))


@dataclass(frozen=True, slots=True)
class _Prefix:
    """A prefix as DescribeAcls names one, so that a name of its own is made up."""

    resource_name: str
    pattern_type: int = PREFIXED


def _is_general(name: str, scope: NameScope, patterns: Iterable[Any]) -> bool:
    """Whether no pattern within the scope matches a name, but the scope itself."""
    for entry in patterns:
        pattern = str(entry.resource_name)
        is_prefix = int(entry.pattern_type) == PREFIXED
        if pattern == name or (is_prefix and pattern != scope.prefix and name.startswith(pattern)):
            return False
    return True

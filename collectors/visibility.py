"""Determines whether every transactional id is visible to us; otherwise an unlisted id may be hidden.

ListTransactions silently leaves out each id that we may not DESCRIBE. No request returns our own
permissions, and brokers do not show `super.users`. But an authorizer's answer depends only on which ACL
patterns match an id: so the ACLs are read (DescribeAcls), and one id of each kind that the patterns
distinguish is tried, most of them made up. DescribeTransactions rejects an id that may not be seen
before it checks whether the id exists. The proof holds for super users, client certificates and denials
alike. It needs DESCRIBE on Cluster.
Source: KIP-140 and KIP-290 (patterns), StandardAuthorizer, KafkaApis of the broker.
"""

from __future__ import annotations

import string
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from collectors.session import Build, Request, Response, Session, body_of
from collectors.wire import codec
from collectors.wire.api import DESCRIBE_ACLS, DESCRIBE_TRANSACTIONS
from collectors.wire.failure import Failure
from collectors.wire.transaction_answers import read_transactions
from rules.facts.identity import Broker
from rules.facts.transactions import IdVisibility

MAX_AGE_SECONDS: Final = 300.0  # permissions change seldom
MAX_TRIED: Final = 1000  # ids in one request; beyond that many patterns nothing is proven

_TRANSACTIONAL_ID: Final = 5  # resource type
_ANY: Final = 1  # of pattern types, operations and permissions alike
PREFIXED: Final = 4  # pattern type
_EVERY_ID: Final = "*"
_CLUSTER_AUTHORIZATION_FAILED: Final = 31
_TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Final = 53
SECURITY_DISABLED: Final = 54  # there is no authorizer
MADE_UP: Final = "-tidemark-"  # in each id or name that is made up
_LETTERS: Final = string.ascii_letters + string.digits + string.punctuation


def patterns_body(resource_type: int) -> Build:
    """Return the request for every ACL of a resource type; 1 is any type."""
    return body_of(
        DESCRIBE_ACLS,
        resource_type_filter=resource_type,
        resource_name_filter=None,
        pattern_type_filter=_ANY,
        principal_filter=None,
        host_filter=None,
        operation=_ANY,
        permission_type=_ANY,
    )


def describe_request(broker: Broker, ids: Iterable[str]) -> Request:
    """Return the request for the transactions of some ids."""
    build = body_of(DESCRIBE_TRANSACTIONS, transactional_ids=tuple(ids))
    return Request(broker, DESCRIBE_TRANSACTIONS, build)


@dataclass(slots=True)
class VisibilityReader:
    """Determines the visibility, and remembers it for five minutes."""

    declared: bool = False  # by a setting: nothing is queried
    _visibility: IdVisibility = IdVisibility.UNPROVEN
    _queried_at: float | None = None  # monotonic; None: there was no answer yet

    def collect(self, session: Session, *, is_needed: bool) -> IdVisibility:
        """Return why every id is visible; `is_needed` demands a proof of this round.

        It takes two requests to each broker, as each decides for itself. A missing answer is no gap: it
        only proves nothing, and is requested again in the next round.
        """
        if self.declared:
            return IdVisibility.DECLARED
        is_fresh = (
            self._queried_at is not None and session.began - self._queried_at < MAX_AGE_SECONDS
        )
        if is_needed or not is_fresh:
            proven = _prove(session)
            self._visibility = IdVisibility.UNPROVEN if proven is None else proven
            self._queried_at = None if proven is None else session.began
        return self._visibility


def _prove(session: Session) -> IdVisibility | None:
    """Return what can be proven, None if a broker has to be queried again."""
    responses = session.exchange(
        [Request(b, DESCRIBE_ACLS, patterns_body(_TRANSACTIONAL_ID)) for b in session.brokers]
    )
    read = [response.read() for response in responses]
    answers = [answer for answer in read if not isinstance(answer, Failure)]
    if not answers or len(answers) < len(read):
        return None
    codes = {int(answer.error_code) for answer in answers}
    if _CLUSTER_AUTHORIZATION_FAILED in codes:
        return IdVisibility.UNPROVEN
    if not codes <= {codec.NO_ERROR, SECURITY_DISABLED}:
        return None
    if codes == {SECURITY_DISABLED}:
        return IdVisibility.NO_AUTHORIZER
    return _try(
        session, ids_to_try(resource for answer in answers for resource in answer.resources)
    )


def _try(session: Session, ids: Sequence[str] | None) -> IdVisibility | None:
    if ids is None:
        return IdVisibility.UNPROVEN
    responses = session.exchange([describe_request(broker, ids) for broker in session.brokers])
    outcomes = [_sees(response, ids) for response in responses]
    if None in outcomes:
        return None
    return IdVisibility.ACLS if all(outcomes) else IdVisibility.UNPROVEN


def _sees(response: Response, ids: Sequence[str]) -> bool | None:
    """Whether a broker rejected none of the ids, None without an answer."""
    described = response.read_by(read_transactions)
    if isinstance(described, Failure):
        return None
    allowed = {
        entry.transactional_id
        for entry in described
        if entry.error != _TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    }
    return allowed.issuperset(ids)


def ids_to_try(resources: Iterable[Any], letters: str = _LETTERS) -> tuple[str, ...] | None:
    """Return one id of each kind that the patterns distinguish, None if there are too many.

    Ids that are made up have only these letters, which a name of this kind may have.

    These are: each name that a pattern spells out, one that begins with each prefix and with no
    longer one, and one that no pattern but `*` matches.
    """
    patterns = {(int(resource.pattern_type), str(resource.resource_name)) for resource in resources}
    prefixes = {name for kind, name in patterns if kind == PREFIXED}
    names = {name for kind, name in patterns if kind != PREFIXED} - {_EVERY_ID}
    if len(prefixes) + len(names) >= MAX_TRIED:
        return None
    made_up = [_id_of(prefix, prefixes, letters) for prefix in sorted(prefixes | {""})]
    ids = [name for name in made_up if name is not None]
    return (*sorted(names), *ids) if len(ids) == len(made_up) else None


def _id_of(prefix: str, prefixes: Iterable[str], letters: str) -> str | None:
    """Make up an id that begins with a prefix and with no longer one of them."""
    place = len(prefix)
    goes_on = {
        other[place] for other in prefixes if other.startswith(prefix) and len(other) > place
    }
    letter = next((letter for letter in letters if letter not in goes_on), None)
    return None if letter is None else f"{prefix}{letter}{MADE_UP}{uuid.uuid4().hex}"

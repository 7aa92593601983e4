"""Routes of losses: the findings of the rules that detect lost records.

Open ones come from memory and are available while the database is away; all others come from the
database, as do the occurrences of each.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Response

from rules.facts.last_observation import microseconds
from rules.open_findings import OpenFinding
from service.api.core.paging import LAST_US, Key, Page, Paging, decode_cursor, page_of
from service.api.core.ports import History, Sources
from service.api.core.problems import not_found
from service.api.core.queries import NoParameters, StateFilter, matches
from service.api.core.stamps import stamp, stored_stamp
from service.api.findings.open_list import OpenList, open_findings
from service.api.findings.routes import cluster_id_of, finding_detail
from service.api.findings.views import (
    FindingDetail,
    Transition,
    from_storage,
    parse_id,
)
from service.api.losses.models import LossDetail, LossEvent, LossIncident, LossPage, LossQuery
from service.api.losses.views import (
    CLASS_OF,
    RULE_OF,
    Incident,
    LossFinding,
    class_of,
    event_of,
    fact_of,
    groups_in,
    incident_view,
    incidents_of,
    loss_of,
    open_fact,
    open_loss,
    rule_of,
)
from service.rounds.latest import ServiceState
from service.rounds.persistence import PersistenceState
from service.storage.findings.findings import (
    storable,
    storable_evidence,
    storable_text,
)
from service.storage.findings.history import FindingFilter

NO_LOSS: Final = "there is no such loss"
MOST_STORED: Final = 5000  # findings that are read for a list; an incident may have thousands


def losses_router(sources: Sources, open_list: OpenList) -> APIRouter:
    """Return the routes of losses."""
    router = APIRouter(tags=["losses"])

    @router.get("/losses", response_model=LossPage)
    async def list_losses(paging: Paging, query: Annotated[LossQuery, Query()]) -> Response:
        """Return losses by incident, the worst first, and within each by partition.

        A loss has the facts of its last occurrence; `/losses/{id}` has all of them. Filters show what is
        known to match, and of an incident the partitions that match.
        """
        state, name = sources.state, f"losses-{query.state}"
        after = decode_cursor(query.cursor, name, int, int, str)

        def answer(findings: list[LossFinding], **fields: Any) -> LossPage:
            page = _page(findings, after, query, state)
            storage = state.persistence.state
            return LossPage(**fields, **paging.page(name, page), storage=storage)

        if query.state is StateFilter.OPEN:
            return await sources.answers.render_once(
                state, lambda: answer(_open(state, query), **stamp(state), is_cut=False), paging
            )
        stored, is_cut = await sources.in_database(lambda: _stored(sources.history, query))
        return await sources.answers.render(
            lambda: answer(stored, **stored_stamp(state), is_cut=is_cut), paging
        )

    @router.get("/losses/{loss_id}", response_model=LossDetail)
    async def get_loss(
        loss_id: Annotated[str, Path(examples=["committed_records_lost-0123456789abcdef"])],
        _query: NoParameters,
    ) -> Response:
        """Return a loss with its occurrences, oldest first."""
        name = parse_id(loss_id)
        if name is None or name[0] not in CLASS_OF:
            raise not_found(NO_LOSS)
        storage = sources.state.persistence.state
        detail = await finding_detail(sources, open_list, *name, NO_LOSS)
        return await sources.answers.render(lambda: _detail(detail(), storage))

    return router


def _detail(finding: FindingDetail, storage: PersistenceState) -> LossDetail:
    return LossDetail(
        as_of=finding.as_of,
        is_current=finding.is_current,
        loss=loss_of(finding.finding),
        events=_events(finding.transitions),
        error=finding.error,
        storage=storage,
    )


def _events(steps: list[Transition] | None) -> list[LossEvent] | None:
    if steps is None:
        return None
    return [event for step in steps if (event := event_of(step)) is not None]


def _page(
    findings: list[LossFinding], after: Key | None, query: LossQuery, state: ServiceState
) -> Page[LossIncident]:
    page = page_of(incidents_of(findings), _key, after=after, limit=query.limit)
    open_ids = _open_ids(state) if query.state is not StateFilter.OPEN else ()
    return Page([incident_view(incident, open_ids) for incident in page.items], page.last)


def _open_ids(state: ServiceState) -> set[str]:
    """Return the incidents of all open findings: a query may select or read only ended ones of them."""
    return {
        open_fact(entry).incident
        for entry in state.open_findings.values()
        if entry.identity[0] in CLASS_OF
    }


def _key(incident: Incident) -> Key:
    """Order the worst first, then the newest."""
    return int(incident.outcome), LAST_US - microseconds(incident.since), incident.incident_id


def _open(state: ServiceState, query: LossQuery) -> list[LossFinding]:
    cluster_id = cluster_id_of(state)
    return [
        open_loss(entry, cluster_id)
        for entry in open_findings(state).values()
        if _is_queried(entry, query)
    ]


def _stored(history: History, query: LossQuery) -> tuple[list[LossFinding], bool]:
    """Return the newest matching findings, and whether older ones were left out."""
    read = history.page(_filter_of(query), MOST_STORED + 1)
    findings = [
        LossFinding(
            fact=fact_of(stored.rule_id, stored.labels, stored),
            severity=stored.severity,
            is_open=stored.ended_at is None,
            last_breach_at=stored.last_breach_at,
            view=partial(from_storage, past),
        )
        for past in read[:MOST_STORED]
        for stored in [past.finding]
        if query.class_ in (None, class_of(stored.rule_id, stored.reason))
    ]
    return findings, len(read) > MOST_STORED


def _is_queried(entry: OpenFinding, query: LossQuery) -> bool:
    class_ = class_of(entry.identity[0], entry.reason)
    if class_ is None or query.class_ not in (None, class_):
        return False
    is_recent = query.since is None or entry.last_breach_at >= query.since
    return is_recent and _is_at(entry, query)


def _is_at(entry: OpenFinding, query: LossQuery) -> bool:
    """Return whether topic, partition and group match, by their stored names as in the database."""
    labels = storable(dict(entry.identity[1]))
    if query.partition is not None and labels.get("partition") != str(query.partition):
        return False
    if query.topic is not None and not _any_matches(query.topic, [labels.get("topic")]):
        return False
    if query.group is None:
        return True
    groups = [labels.get("group"), *groups_in(storable_evidence(entry.evidence))]
    return _any_matches(query.group, groups)


def _any_matches(pattern: str, names: Iterable[str | None]) -> bool:
    stored = storable_text(pattern)
    return any(name is not None and matches(stored, name) for name in names)


def _filter_of(query: LossQuery) -> FindingFilter:
    rules = RULE_OF.values() if query.class_ is None else [rule_of(query.class_)]
    return FindingFilter(
        only_ended=query.state is StateFilter.ENDED,
        rule_ids=frozenset(rules),
        topic=query.topic,
        partition=query.partition,
        group=query.group,
        breached_since=query.since,
    )

"""The committed OpenAPI document against the real application: whatever it allows, and much that it
does not, has an answer of the form that it promises, and none is an error of ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from sqlalchemy import Engine, text

from service.api.core.answers import Answers
from service.api.core.few_at_once import FewAtOnce
from service.api.findings.views import finding_id
from service.observe.log_inbox import LogInbox
from service.rounds.latest import ServiceState
from service.runtime.threads import in_thread, without_limit
from service.storage.findings.history import FindingHistory
from service.storage.rounds.inbox import StoredInbox
from tests.factories import at
from tests.integration.api.fake_jobs import FakeJobs
from tests.integration.api.given import EVENT, Api
from tests.integration.serving import serving
from tests.unit.service.api.given import OPENAPI_PAGE, open_finding, opened, service_state
from tests.unit.service.api.losses.losses import open_loss
from tests.unit.service.api.sequences.sequences import LOSS, after

EXAMPLES: Final = 6  # of each operation
CLUSTER: Final = "described"
SCHEMA = schemathesis.openapi.from_path(OPENAPI_PAGE)
KNOWN: Final[dict[str, Any]] = {  # what there is, by the path or the name that paths have for it
    "/api/v1/clusters/{name}": CLUSTER,
    "/api/v1/receivers/{name}/test": "pager",
    "/api/v1/jobs/{name}": "retention",
    "/api/v1/jobs/{name}/run": "retention",
    "finding_id": finding_id("partition_offline", dict(open_finding().identity[1])),
    "loss_id": finding_id(EVENT, dict(open_loss().identity[1])),
}
WISH: Final = {"matchers": 'topic="orders"', "ends_at": at(10**6).isoformat(), "comment": "moving"}


@schemathesis.serializer("application/x-ndjson", "application/x-protobuf")
def as_it_is(_context: Any, value: Any) -> bytes:
    """Send what is no JSON."""
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")


def is_chosen(value: object) -> bool:
    """Choose two of three, always the same ones."""
    return sum(map(ord, str(value))) % 3 > 0


@SCHEMA.hook
def map_path_parameters(context: Any, path_parameters: dict[str, Any] | None) -> Any:
    """Ask for something that there is, more often than not."""
    made = dict(path_parameters or {})
    for name, value in made.items():
        known = KNOWN.get(context.operation.path, KNOWN.get(name))
        made[name] = known if known is not None and is_chosen(value) else value
    return made


@SCHEMA.hook
def map_body(context: Any, body: Any) -> Any:
    """Wish for a silence that can be made, wherever the form of one is sent."""
    is_silence = context.operation.path.startswith("/api/v1/silences")
    is_whole = isinstance(body, dict) and body.keys() <= WISH.keys() | {"starts_at", "all"}
    return {**body, **WISH, "starts_at": None} if is_silence and is_whole else body


@SCHEMA.hook
def map_headers(_context: Any, headers: Any) -> Any:
    """Mean the version that there is, more often than not."""
    if headers and is_chosen(headers.get("If-Match", "")):
        return {**headers, "If-Match": "*"}
    return headers


def seen(api: Api) -> ServiceState:
    """Return an observation of a cluster in which records are lost."""
    view = after(*LOSS)
    return service_state(
        cluster=api.cluster,
        snapshot=view.snapshot,
        view=view,
        at=view.now,
        open_findings=opened(open_finding("orders"), open_loss()),
    )


@pytest.fixture(scope="module")
def base_url(engine: Engine) -> Iterator[str]:
    api = Api(engine, CLUSTER, jobs=FakeJobs())
    alert = api.alert(rule=EVENT)
    api.store(alert, api.alert("bills"))
    KNOWN["fingerprint"] = alert.fingerprint
    KNOWN["silence_id"] = api.ask("POST", "/silences", WISH).json()["silence"]["id"]
    KNOWN["delivery_id"] = api.ask("POST", "/receivers/pager/test").json()["delivery"]["id"]
    with engine.begin() as connection:
        connection.execute(text("UPDATE outbox SET state = 'dead', done_at = now()"))
    api.sources.latest.publish(seen(api))
    inbox = LogInbox(
        StoredInbox(lambda: engine, api.cluster),
        max_waiting=1000,
        utc_now=lambda: api.now,
        in_time=without_limit,
    )
    real = replace(
        api.sources,
        history=FindingHistory(lambda: engine, api.cluster),
        in_thread=in_thread,
        answers=Answers(in_thread),
        in_database=FewAtOnce(in_thread),
        inbox=inbox,
        ingesting=FewAtOnce(in_thread, 1),
    )
    with serving(api.build(real)) as served:
        yield f"http://127.0.0.1:{served.address[1]}"


@SCHEMA.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
def test_every_operation_answers_as_it_is_described(case: Case[Any], base_url: str) -> None:
    case.call_and_validate(
        base_url=base_url,
        checks=[
            schemathesis.checks.not_a_server_error,
            schemathesis.checks.status_code_conformance,
            schemathesis.checks.content_type_conformance,
            schemathesis.checks.response_schema_conformance,
            schemathesis.checks.response_headers_conformance,
        ],
    )

"""The committed OpenAPI document is what the code serves, and it is complete."""

from __future__ import annotations

import json

from rules.catalogue.all_rules import RULES, SELF_MONITORING
from service.api.document import openapi_page
from tests.unit.service.api.given import OPENAPI_PAGE, World, client_of


def test_the_committed_document_is_up_to_date() -> None:
    expected = openapi_page(World().app())
    assert OPENAPI_PAGE.read_text(encoding="utf-8") == expected, "run `make golden`"


def test_the_document_is_served() -> None:
    served = client_of().get("/api/v1/openapi.json").json()
    assert served == json.loads(OPENAPI_PAGE.read_text(encoding="utf-8"))


def test_every_operation_tells_its_errors_in_the_one_form() -> None:
    document = json.loads(OPENAPI_PAGE.read_text(encoding="utf-8"))
    operations = [one for path in document["paths"].values() for one in path.items()]
    assert operations
    for _method, operation in operations:
        (done,) = operation["responses"].keys() - {"default"}
        assert done in {"200", "201", "202", "204"}
        (problem,) = operation["responses"]["default"]["content"].items()
        reference = {"$ref": "#/components/schemas/Problem"}
        assert problem == ("application/problem+json", {"schema": reference})


def test_every_operation_names_the_scope_that_it_needs() -> None:
    document = json.loads(OPENAPI_PAGE.read_text(encoding="utf-8"))
    needed: dict[str, set[str]] = {}
    for path in document["paths"].values():
        for operation in path.values():
            assert operation["security"][0] == {}, "on the loopback interface none"
            (scope,) = operation["security"][1]["token"]
            needed.setdefault(scope, set()).add(operation["operationId"])
    assert needed.pop("read") > {"get_status", "list_alerts", "get_delivery", "list_jobs"}
    assert needed == {
        "ingest": {"post_application_log", "post_broker_log"},
        "ack": {
            "acknowledge_alert",
            "unacknowledge_alert",
            "give_feedback",
            "withdraw_feedback",
            "close_alert",
        },
        "silence": {"create_silence", "edit_silence", "expire_silence"},
        "admin": {
            "list_audit",
            "send_test_message",
            "replay_delivery",
            "roll_back_baselines",
            "run_job",
        },
    }


def test_operations_have_plain_names() -> None:
    document = json.loads(OPENAPI_PAGE.read_text(encoding="utf-8"))
    names = {one["operationId"] for path in document["paths"].values() for one in path.values()}
    assert {"get_status", "list_partitions", "get_group"} < names


def test_every_reference_leads_somewhere() -> None:
    text = OPENAPI_PAGE.read_text(encoding="utf-8")
    known = set(json.loads(text)["components"]["schemas"])
    named = {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert named <= known
    assert "HTTPValidationError" not in known


def test_the_catalogue_lists_every_rule_with_its_reasons() -> None:
    told = client_of().get("/api/v1/rules").json()
    ids = [rule.meta.rule_id for rule in RULES] + [SELF_MONITORING.rule_id]
    assert [rule["id"] for rule in told["items"]] == ids
    assert all(rule["why_it_matters"] and rule["runbook"] for rule in told["items"])
    visibility = told["items"][-1]
    assert visibility.pop("why_it_matters").startswith("While Tidemark cannot observe the cluster")
    assert visibility.pop("runbook").startswith(
        "`tidemark collect --once` prints what cannot be observed"
    )
    assert visibility == {
        "id": "observation_stale",
        "summary": SELF_MONITORING.summary,
        "severity": "critical",
        "milder": {},
        "kind": "state",
        "for_seconds": 0.0,
        "is_critical": False,
        "reasons": ["sees", "blind_since_short", "blind"],
    }

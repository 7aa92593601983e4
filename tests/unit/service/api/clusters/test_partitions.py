"""Partitions by topic and number, chosen on columns."""

from __future__ import annotations

from typing import Any

from rules.facts.column import Ragged
from rules.facts.snapshot import Snapshot
from service.views.snapshot_rows import partition_rows
from tests.factories import offsets, partitions, snapshot
from tests.unit.service.api.given import client_of


def names(answer: dict[str, Any]) -> list[tuple[str, int]]:
    return [(row["topic"], row["partition"]) for row in answer["items"]]


def seen() -> Snapshot:
    """Return topics that the index does not hold in the order of their names."""
    return snapshot(
        partitions=partitions(
            {"orders": 2, "audit": 1, "payments": 2},
            isr=Ragged.of([(1, 2, 3), (1,), None, (1, 2, 3), (1, 2, 3)]),
        ),
        offsets=offsets(
            5,
            last_stable_offset=[100, 100, None, 90, 100],
            high_watermark=[100, 100, None, 100, 100],
            log_end_offset=[100, 100, 7, 100, 101],
        ),
    )


def test_partitions_come_by_name_and_number() -> None:
    told = client_of(snapshot=seen()).get("/api/v1/partitions").json()
    assert names(told) == [
        ("audit", 0), ("orders", 0), ("orders", 1), ("payments", 0), ("payments", 1),
    ]  # fmt: skip
    assert told["next"] is None


def test_a_row_is_that_of_the_document_and_the_spans() -> None:
    row = client_of(snapshot=seen()).get("/api/v1/partitions?topic=payments").json()["items"][0]
    spans = {"open_span": 10, "unreplicated_span": 0}
    assert row == partition_rows(seen())[3] | spans
    dark = client_of(snapshot=seen()).get("/api/v1/partitions?topic=audit").json()["items"][0]
    assert (dark["isr"], dark["high_watermark"], dark["open_span"]) == (None, None, None)


def test_at_risk_is_a_short_isr_or_offsets_on_too_few_replicas() -> None:
    """A transaction in flight is no risk: under load nearly every partition has one."""
    told = client_of(snapshot=seen()).get("/api/v1/partitions?at_risk=true").json()
    assert names(told) == [("orders", 1), ("payments", 1)]
    every = client_of(snapshot=seen()).get("/api/v1/partitions?at_risk=false").json()
    assert len(every["items"]) == 5


def test_a_pattern_has_to_match_the_whole_topic() -> None:
    client = client_of(snapshot=seen())
    for pattern, expected in (("*s", 4), ("order*", 2), ("order", 0), ("*ud*", 1), ("[ao]*", 0)):
        answer = client.get("/api/v1/partitions", params={"topic": pattern})
        assert len(answer.json()["items"]) == expected, pattern


def test_pages_follow_their_links_with_the_same_filter() -> None:
    client = client_of(snapshot=seen())
    url, found, pages = "/api/v1/partitions?topic=*s&limit=1&at_risk=true", [], 0
    while url:
        answer = client.get(url)
        found += names(answer.json())
        assert ("next" in answer.links) == (answer.json()["next"] is not None)
        url = answer.links.get("next", {}).get("url", "")
        pages += 1
    assert found == [("orders", 1), ("payments", 1)]
    assert pages == 2


def test_a_topic_that_went_away_does_not_stop_the_next_page() -> None:
    first = client_of(snapshot=seen()).get("/api/v1/partitions?limit=2").json()
    assert names(first)[-1] == ("orders", 0)
    later = snapshot(partitions=partitions({"aaa": 1, "payments": 1, "zzz": 1}))
    rest = client_of(snapshot=later).get(f"/api/v1/partitions?cursor={first['next']}").json()
    assert names(rest) == [("payments", 0), ("zzz", 0)]

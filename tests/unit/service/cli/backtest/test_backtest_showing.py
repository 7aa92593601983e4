"""A backtest as a table and as a page."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from service.cli.backtest.page import page
from service.cli.backtest.showing import parts
from tests.unit.service.cli.printing import printed

OPENING = {
    "series": 'produce_rate{topic="<script>",partition="3"}',
    "opened_at": "2026-10-05T12:00:00Z",
    "closed_at": None,
    "score": 7.6,
    "value": 84.0,
    "usual": {"least": 3.0, "most": 11.0},
    "explanation": "84 offsets/s; usual for Monday 14:00-14:30 is 3-11 offsets/s (5 weeks)",
}
LABELS = {
    "incidents": 4,
    "found": 3,
    "precision": 0.75,
    "recall": 0.5,
    "event_f1": 0.6,
    "median_delay_seconds": 300.0,
}


def result(*changes: str, openings: int = 1, labels: dict[str, Any] | None = None) -> Any:
    totals = {
        "metric": "produce_rate",
        "rule": "produce_rate_unusual",
        "openings": openings,
        "series": 9,
        "series_days": 63,
        "openings_per_series_week": openings / 9,
    }
    return {
        "settings": list(changes),
        "total": totals,
        "metrics": [totals],
        "labels": labels,
        "openings": [OPENING] * openings,
    }


def document(*results: Any) -> dict[str, Any]:
    shown = {
        "cluster": "c",
        "time_zone": "Europe/Berlin",
        "from": "2026-10-01",
        "to": "2026-10-07",
        "days": 7,
        "learnt_from": "2026-09-01",
        "results": list(results),
        "damaged": [],
        "not_folded": [],
        "unnamed": [],
    }
    return shown if len(results) == 1 else {**shown, "only_now": [OPENING], "only_changed": []}


def test_the_table_says_how_often_it_would_have_fired_and_why() -> None:
    text = printed(parts(document(result(labels=LABELS))))
    assert (
        "produce_rate_unusual (produce_rate) would have fired 1 time: 9 series judged, "
        "0.111 per series and week" in text
    )
    assert "3 of 4 labelled ones opened" in text
    assert "5 min (median)" in text
    assert "still open" in text
    assert "usual for Monday 14:00-14:30" in text


def test_two_settings_are_shown_with_what_only_one_of_them_has() -> None:
    text = printed(parts(document(result(), result("k_min=4", openings=0))))
    assert text.index("settings in force") < text.index("k_min=4\n")
    assert "only with the settings in force: 1 opening\n" in text
    assert "only with k_min=4: 0 openings" in text


def test_without_anything_judged_no_zero_is_shown() -> None:
    nothing = {**result(openings=0), "metrics": []}
    text = printed(parts(document(nothing)))
    assert "nothing was judged" in text
    assert "fired 0 times" not in text


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [str(value) for name, value in attrs if name in ("src", "href")]


def test_the_page_needs_nothing_beside_it_and_shows_names_as_they_are() -> None:
    text = page(document(result(labels=LABELS)))
    read = _Page()
    read.feed(text)
    assert read.addresses == []
    assert not {"script", "link", "img"}.intersection(read.tags)
    assert "topic=&quot;&lt;script&gt;&quot;" in text
    assert read.tags.count("rect") == 7, "a bar for each day"

"""The page of metrics is the one that the names give."""

from __future__ import annotations

from pathlib import Path

from rules import names
from service.metrics.page import SECTIONS, metrics_page

PAGE = Path(__file__).parents[4] / "docs" / "metrics.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == metrics_page()


def test_every_metric_has_its_section() -> None:
    assert tuple(metric for _, found in SECTIONS for metric in found) == names.METRICS

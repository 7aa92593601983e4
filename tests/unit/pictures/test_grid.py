"""Panels fill the page: 24 columns with the same gaps."""

from __future__ import annotations

from tests.pictures.grid import GAP, HEADER, MARGIN, ROW, WIDTH, box_of, height_of


def test_panels_side_by_side_leave_a_gap_and_end_at_the_margin() -> None:
    left = box_of({"x": 0, "y": 1, "w": 12, "h": 8})
    right = box_of({"x": 12, "y": 1, "w": 12, "h": 8})
    assert left.x == MARGIN
    assert abs(left.x + left.width + GAP - right.x) < 1e-6
    assert abs(right.x + right.width - (WIDTH - MARGIN)) < 1e-6
    assert left.y == HEADER + ROW + GAP
    assert left.height == 8 * ROW + 7 * GAP


def test_a_page_ends_below_its_last_panel() -> None:
    panels = [
        {"gridPos": {"x": 0, "y": 0, "w": 1, "h": 1}},
        {"gridPos": {"x": 0, "y": 5, "w": 1, "h": 2}},
    ]
    last = box_of(panels[1]["gridPos"])
    assert height_of(panels) == last.y + last.height + GAP + MARGIN

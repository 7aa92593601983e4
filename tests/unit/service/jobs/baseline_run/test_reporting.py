"""Lines for a person during a baseline run."""

from __future__ import annotations

import pytest

from service.jobs.baseline_run.reporting import line_of
from service.storage.baselines.publishing import Publishing

NIGHT = {
    "event": "baseline_run",
    "day": "2026-03-29",
    "run": "ab12",
    "is_new": True,
    "series": 40,
    "outcomes": {"banded": 39, "sparse": 1},
    "damaged": {},
    "seconds": {"all": 1.25},
}

IN_WORDS = {
    Publishing.PUBLISHED: "is in force: 40 series, loaded in 0.3 s",
    Publishing.UNCHANGED: "was published before; the run in force stays the same",
    Publishing.OLDER: "is not put in force: the run of a later day was published before",
}


def test_a_baseline_run_says_what_became_of_its_series() -> None:
    assert line_of(NIGHT) == (
        "baseline run of 2026-03-29: 40 series (39 banded, 1 sparse), run ab12, in 1.2 s"
    )


def test_a_baseline_run_that_was_there_says_so() -> None:
    assert line_of(NIGHT | {"is_new": False}).endswith("run ab12, made before")


def test_a_damaged_file_is_named_with_what_it_costs() -> None:
    line = line_of(NIGHT | {"damaged": {"3": "days/x: torn"}})
    assert "bucket 3 had a day without data, its file is damaged: days/x: torn" in line


def test_what_was_set_aside_while_folding_is_named() -> None:
    damaged = {"hours/hour=2026-03-29T05/part-1.parquet": "torn"}
    unfinished = {"2026-03-30": "no answer"}
    line = line_of({"event": "folded", "days": 2, "damaged": damaged, "unfinished": unfinished})
    assert line == (
        "folded the hours of 2 days; hours/hour=2026-03-29T05/part-1.parquet is damaged and set "
        "aside: torn; the hours of 2026-03-30 wait: no answer"
    )


@pytest.mark.parametrize("outcome", Publishing)
def test_what_became_of_a_run_is_told_in_words(outcome: Publishing) -> None:
    event = {"event": "published", "day": "2026-03-29", "run": "ab12", "series": 40, "seconds": 0.3}
    line = line_of(event | {"outcome": outcome.value})
    assert line == f"run ab12 of 2026-03-29 {IN_WORDS[outcome]}"

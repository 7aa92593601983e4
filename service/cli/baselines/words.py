"""Numbers, times of the week and reasons of baselines as text for a person."""

from __future__ import annotations

from typing import Final

from rules.baseline.policy import policy_of
from rules.baseline.wording import TIMES, TO, digits, with_unit
from rules.baseline.wording import learnt_from as days_in_words
from service.terminal.parts import Row
from service.terminal.words import ABSENT, text, time

NO_BAND: Final = {
    "few_hours": "less than two hours of data so far",
    "mostly_zero": "it is mostly zero: rules that count are more useful",
    "silent_week": "not measured for a week",
}
BESIDE: Final = {
    "first_weeks": "too young for a weekly profile",
    "first_day": "known for less than a day: one level for the whole day, and no finding opens on it",
    "silent_day": "not measured that day: the previous band stays",
}
UNKNOWN: Final = {
    "no_band": "not judged: there is no band by which it could open",
    "not_measured": "not measured",
    "not_learnt": "nothing is known of this half hour",
    "short_history": "less than half of the hour before is known",
}
THRESHOLD_BY: Final = {
    "least": "the minimum",
    "own_history": "raised, because the last 28 days often deviated that far",
    "limit": "the upper limit: the last 28 days would raise it further",
}


def number(value: object) -> str:
    """Return a number with three significant digits, or with all digits before the point."""
    return digits(value) if isinstance(value, int | float) else ABSENT


def amount(value: object, metric: object) -> str:
    """Return a number with the unit of its metric."""
    shown = number(value)
    return shown if shown == ABSENT else with_unit(shown, str(metric))


def usual_range(usual: Row, metric: object) -> str:
    """Return the usual range: from the least to the most."""
    return f"{number(usual.get('least'))}{TO}{amount(usual.get('most'), metric)}"


def slot(usual: Row) -> str:
    """Return a half hour with its weekday; without it if the profile is the same on every day."""
    weekday = usual.get("weekday")
    span = f"{text(usual.get('begins'))}{TO}{text(usual.get('ends'))}"
    return f"{weekday} {span}" if weekday else span


def learnt_from(days: object) -> str:
    """Return the length of the data that was used."""
    return days_in_words(days) if isinstance(days, int) else ABSENT


def sentence(series: Row) -> str:
    """Return the usual range of a series, or why there is none."""
    usual = series.get("usual")
    reason = str(series.get("reason"))
    if not usual:
        return f"no band: {NO_BAND.get(reason, reason)}"
    days = learnt_from(series.get("days"))
    return f"usual for {slot(usual)} is {usual_range(usual, series.get('metric'))} ({days})"


def scored(row: Row | None, metric: object) -> str | None:
    """Return what was measured last, and how unusual it is; None if nothing was scored."""
    if not row:
        return None
    why = UNKNOWN.get(str(row.get("unknown_reason")))
    deviations, since = row.get("usual_deviations"), row.get("unusual_since")
    parts = [
        None if row.get("value") is None else amount(row["value"], metric),
        None if deviations is None else f"{number(deviations)} {TIMES} the usual deviation",
        why,
        f"unusual since {time(since)}" if since else None,
    ]
    return "; ".join([part for part in parts if part is not None]) + f" (at {time(row.get('at'))})"


def beyond(usual: Row, metric: object) -> str | None:
    """Return which values are unusual; None if there are no limits. No metric is ever below zero."""
    below, above = usual.get("unusual_below") or None, usual.get("unusual_above")
    parts = [
        f"{word} {amount(value, metric)}"
        for word, value in (("below", below), ("above", above))
        if value is not None
    ]
    return " or ".join(parts) or None


def threshold(series: Row) -> str | None:
    """Return the threshold and its origin."""
    if series.get("threshold") is None:
        return None
    by = str(series.get("threshold_by"))
    above, below = number(series["threshold"]), number(series.get("threshold_below"))
    sides = above if below in (ABSENT, above) else f"{above} above and {below} below, in"
    return f"{sides} usual deviations ({THRESHOLD_BY.get(by, by)})"


def slow_change(series: Row) -> str | None:
    """Return the threshold of slow changes; None for a metric that may drift."""
    value = series.get("drift_threshold")
    if value is None or not policy_of(str(series.get("metric"))).drift_seconds:
        return None
    return f"half an hour beyond {number(value)} usual deviations"


def fall(series: Row) -> str | None:
    """Return when a fall is always reported; None for a metric that may fall."""
    share, metric = series.get("fall_share"), str(series.get("metric"))
    if share is None or not policy_of(metric).fall_share:
        return None
    return f"below {share:.0%} of what is expected" if share else "often that low: not reported"


def trend(series: Row) -> str | None:
    """Return the trend of the level."""
    slope = series.get("slope_per_day")
    if slope is None:
        return None
    sign = "+" if slope >= 0 else ""
    return f"{sign}{amount(slope, series.get('metric'))} a day, over up to 28 days"

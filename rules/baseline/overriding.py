"""Other numbers of the method for a backtest: `k_min=4`, or `read_committed_lag.open_seconds=600` of one metric."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from rules.baseline.policy import BaselineSettings, Direction, Policy
from rules.baseline.series import Metric

POLICIES: Final = "policies"
# What people call a number that has another name here.
MEANT: Final = {"threshold": "k_min", "min_threshold": "k_min", "for": "open_seconds"}
_MOST: Final = 1e9  # of any number: none is larger by far
_TRUTH: Final = {"true": True, "false": False}
_SHARES: Final = ("days_share", "fall_share", "min_nonzero")
_POSITIVE: Final = ("k_min", "cap_margin", "cap_limit", "min_deviation", "vanished_days")
# They cut what is shown of a band, and judge nothing.
_SHOWN: Final = ("floor", "ceiling")
_METHOD: Final = tuple(
    place.name for place in dataclasses.fields(BaselineSettings) if place.name != POLICIES
)
_POLICY: Final = tuple(
    place.name for place in dataclasses.fields(Policy) if place.name not in _SHOWN
)


def override_settings(settings: BaselineSettings, changes: Sequence[str]) -> BaselineSettings:
    """Return the settings with each change, a NAME=VALUE or METRIC.NAME=VALUE.

    Raises:
        ValueError: a name is unknown, with what may be meant, or a value is not possible.
    """
    for change in changes:
        name, is_change, value = (part.strip() for part in change.partition("="))
        if not is_change or not value:
            raise ValueError(f"{change!r} is not NAME=VALUE, like k_min=4")
        settings = _override(settings, name, value)
    return settings


def _override(settings: BaselineSettings, name: str, text: str) -> BaselineSettings:
    metric, is_of_metric, field = name.partition(".")
    if not is_of_metric:
        if name not in _METHOD:
            raise ValueError(_unknown(name))
        return dataclasses.replace(settings, **{name: _value(settings, name, name, text)})
    if metric not in set(Metric):
        raise ValueError(f"{metric!r} is no metric of history{_nearest(metric, list(Metric))}")
    if field not in _POLICY:
        raise ValueError(_unknown(name))
    known = Metric(metric)
    policy = settings.policies[known]
    value = _value(policy, field, name, text)
    try:
        changed = dataclasses.replace(policy, **{field: value})
    except ValueError as exc:
        raise ValueError(f"{name}={text}: {exc}") from exc
    policies: Mapping[Metric, Policy] = {**settings.policies, known: changed}
    return dataclasses.replace(settings, policies=MappingProxyType(policies))


def _unknown(name: str) -> str:
    metric, _, field = name.rpartition(".")
    meant = MEANT.get(field)
    if not metric and (field in _POLICY or meant in _POLICY):
        return (
            f"{name!r} is a number of one metric: write read_committed_lag.{meant or field}=VALUE"
        )
    if metric and (field in _METHOD or meant in _METHOD):
        return f"{name!r} is a number of the whole method: write {meant or field}=VALUE"
    names = list(_POLICY if metric else _METHOD)
    hint = f": did you mean {meant}?" if meant else _nearest(field, names)
    return f"there is no setting {name!r} of baselines{hint}"


def _nearest(name: str, names: Sequence[str]) -> str:
    nearest = difflib.get_close_matches(name, names, n=2)
    if nearest:
        return f": did you mean {' or '.join(nearest)}?"
    return f": there are {', '.join(names)}"


def _value(holder: BaselineSettings | Policy, field: str, name: str, text: str) -> Any:
    try:
        value = _reader(getattr(holder, field), field)(text)
    except (ValueError, KeyError, OverflowError) as exc:
        raise ValueError(f"{name}={text}: {_expected(getattr(holder, field))}") from exc
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if not 0 <= value <= _MOST:
        raise ValueError(f"{name}={text}: a number from 0 to {_MOST:,.0f} is needed")
    if field in _POSITIVE and value <= 0:
        raise ValueError(f"{name}={text}: a number above 0 is needed")
    if field in _SHARES and value > 1:
        raise ValueError(f"{name}={text}: it is a share, from 0 to 1")
    return value


def _reader(now: object, field: str) -> Callable[[str], Any]:
    match now:
        case Direction():
            return Direction
        case bool():
            return lambda text: _TRUTH[text.lower()]
        case int():
            return int
        case _:
            return lambda text: None if field == "min_rise" and text == "none" else float(text)


def _expected(now: object) -> str:
    match now:
        case Direction():
            return f"one of {', '.join(Direction)} is needed"
        case bool():
            return "true or false is needed"
        case int():
            return "a whole number is needed"
        case _:
            return "a number is needed"

"""Why a row of an import is left out; without pyspark, because who shows it needs none."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a row is left out, beside what `rules.baseline.naming.Unnamed` says of its series."""

    TIME = "bad_time"
    ZONE = "time_without_zone"
    OLD = "too_old"  # older than what is kept
    FUTURE = "in_the_future"
    NO_VALUE = "no_value"  # empty, NaN or infinite: a gap, not a zero
    VALUE = "bad_value"
    NEGATIVE = "negative_value"  # no metric has one; exporters show -1 for "not known"

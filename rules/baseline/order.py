"""Medians and quantiles of rows in which values may be missing.

All are exact order statistics of a row: neither the shape of a block nor its other rows enter, so that a
series gives the same bits alone and among others. Nothing here adds up more than two values.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.baseline.blocks import Float32s

_WIDE: Final = 512  # from here selecting is faster than sorting, where a row has no gap
_NAN: Final = np.float32(np.nan)


def count_known(values: Float32s) -> NDArray[np.int64]:
    """Return how many values of each row (last axis) are known."""
    width = values.shape[-1]
    counts = np.full(values.shape[:-1], width)
    has_gaps = np.isnan(values.max(axis=-1))  # a maximum is NaN if any value is
    counts[has_gaps] = width - np.count_nonzero(np.isnan(values[has_gaps]), axis=-1)
    return counts


def count_known_sorted(ordered: Float32s) -> NDArray[np.int64]:
    """Return how many values of each sorted row are known: others stand last."""
    width = ordered.shape[-1]
    counts = np.full(ordered.shape[:-1], width)
    has_gaps = np.isnan(ordered[..., -1])
    counts[has_gaps] = width - np.count_nonzero(np.isnan(ordered[has_gaps]), axis=-1)
    return counts


def at_rank(ordered: Float32s, rank: NDArray[np.int64]) -> Float32s:
    """Return the value of a rank, from 0, of each sorted row; ranks outside are moved inside."""
    inside = np.clip(rank, 0, ordered.shape[-1] - 1)
    return np.take_along_axis(ordered, inside[..., None], axis=-1)[..., 0]


def medians(values: Float32s, least: int | NDArray[np.int64] = 1) -> Float32s:
    """Return the median of each row (last axis); NaN where fewer than `least` values are known.

    Of an even number it is the mean of the two in the middle.
    """
    if values.size == 0:
        return np.full(values.shape[:-1], _NAN)
    width = values.shape[-1]
    if width < _WIDE:
        ordered = np.sort(values, axis=-1)
        counts = count_known_sorted(ordered)
        middle = _mean_of_two(ordered[..., (width - 1) // 2], ordered[..., width // 2])
        rest = counts < width
        if rest.any():
            middle[rest] = _median_of_sorted(ordered[rest], counts[rest])
    else:
        counts = count_known(values)
        middle = _wide_medians(values, counts)
    return np.where(counts >= np.maximum(least, 1), middle, _NAN)


def medians_of_days(values: Float32s, least: int = 1) -> Float32s:
    """Return the medians over axis 1, a few days, of (n, days, ...); NaN below `least` known ones."""
    lanes, counts = _sorted_days(values)
    return _median_of_lanes(lanes, counts, least)


def shares_of_days(values: Float32s, share: Float32s) -> Float32s:
    """Return a quantile over axis 1, a few days, of (n, days, slots): each series has its own share.

    One half is the median; any other is of the nearest rank. NaN where no day is known.
    """
    lanes, counts = _sorted_days(values)
    shares = _median_of_lanes(lanes, counts, 1)
    others = np.flatnonzero(share != np.float32(0.5))
    if len(others):
        rank = np.floor(share[others, None] * (counts[others] - 1) + np.float32(0.5)).astype(
            np.int64
        )
        inside = np.clip(rank, 0, len(lanes) - 1)
        theirs = np.array([lane[others] for lane in lanes])
        shares[others] = np.take_along_axis(theirs, inside[None], axis=0)[0]
    return np.where(counts > 0, shares, _NAN)


def _sorted_days(values: Float32s) -> tuple[list[Float32s], NDArray[np.int64]]:
    """Return a lane (n, ...) per day, sorted over them, and how many are known: others stand last.

    A sorting network: whole arrays are compared with each other, which is many times faster than to sort
    many short rows.
    """
    days = values.shape[1]
    lanes = np.moveaxis(values, 1, 0).copy()  # (days, n, ...)
    missing = np.isnan(lanes)
    counts = np.full(lanes.shape[1:], days)
    if missing.any():
        counts -= np.count_nonzero(missing, axis=0)
        np.copyto(lanes, np.float32(np.inf), where=missing)
    ordered, spare = list(lanes), np.empty_like(lanes[0])
    for low, high in _network(days):
        lower, higher = ordered[low], ordered[high]
        ordered[low] = np.minimum(lower, higher, out=spare)
        np.maximum(lower, higher, out=higher)
        spare = lower
    return ordered, counts


def _median_of_lanes(lanes: list[Float32s], counts: NDArray[np.int64], least: int) -> Float32s:
    days = len(lanes)
    middle = _mean_of_two(lanes[(days - 1) // 2], lanes[days // 2])
    short = np.nonzero(counts < days)
    if len(short[0]):
        theirs, there = np.array([lane[short] for lane in lanes]), counts[short]
        low, high = (
            np.take_along_axis(theirs, np.clip(rank, 0, days - 1)[None], axis=0)[0]
            for rank in ((there - 1) // 2, there // 2)
        )
        middle[short] = _mean_of_two(low, high)
    return np.where(counts >= max(least, 1), middle, _NAN)


def quantiles(ordered: Float32s, counts: NDArray[np.int64], share: float) -> Float32s:
    """Return a quantile of each sorted row by the nearest rank; of an empty row: NaN.

    The rank is round(share * (known - 1)), a half upward; known values stand first.
    """
    return at_rank(ordered, np.floor(share * (counts - 1) + 0.5).astype(np.int64))


def day_quantiles(values: Float32s, share: float) -> Float32s:
    """Return a quantile of each long row, shape (n, samples), as `quantiles` does."""
    counts = count_known(values)
    width = values.shape[-1]
    whole = counts == width
    shares = np.empty(len(values), np.float32)
    rank = int(np.floor(share * (width - 1) + 0.5))
    shares[whole] = np.partition(values[whole], rank, axis=-1)[:, rank]
    shares[~whole] = quantiles(np.sort(values[~whole], axis=-1), counts[~whole], share)
    return shares


def _mean_of_two(low: Float32s, high: Float32s) -> Float32s:
    return low * np.float32(0.5) + high * np.float32(0.5)


def _median_of_sorted(ordered: Float32s, counts: NDArray[np.int64]) -> Float32s:
    return _mean_of_two(at_rank(ordered, (counts - 1) // 2), at_rank(ordered, counts // 2))


def _wide_medians(values: Float32s, counts: NDArray[np.int64]) -> Float32s:
    """Return the medians of long rows: those without a gap are not sorted, but parted in the middle."""
    width = values.shape[-1]
    whole = counts == width
    if whole.all():
        return _middle(values)
    middle = np.empty(values.shape[:-1], np.float32)
    middle[whole] = _middle(values[whole])
    rest = ~whole
    middle[rest] = _median_of_sorted(np.sort(values[rest], axis=-1), counts[rest])
    return middle


def _middle(values: Float32s) -> Float32s:
    """Return the medians of long rows without gaps."""
    width = values.shape[-1]
    parted = np.partition(values, width // 2, axis=-1)
    high = parted[..., width // 2]
    low = parted[..., : width // 2].max(axis=-1) if width % 2 == 0 else high
    return _mean_of_two(low, high)


@lru_cache(maxsize=32)
def _network(lanes: int) -> tuple[tuple[int, int], ...]:
    """Return the pairs to compare, in order, that sort so many lanes (Batcher's merge exchange)."""
    pairs: list[tuple[int, int]] = []
    top = 1 << max(0, (lanes - 1).bit_length() - 1)
    part = top
    while part > 0:
        jump, residue, distance = top, 0, part
        while True:
            pairs.extend(
                (lane, lane + distance)
                for lane in range(lanes - distance)
                if lane & part == residue
            )
            if jump == part:
                break
            distance, jump, residue = jump - part, jump // 2, part
        part //= 2
    return tuple(pairs)

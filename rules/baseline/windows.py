"""Windows of samples that end with each of some samples: counts of marks, and extremes.

Both kinds of windows, of a whole day and of the last hour, give the same answers for the same samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rules.baseline.blocks import Float32s

Marks = NDArray[np.uint8]
Bools = NDArray[np.bool_]
Widths = NDArray[np.int64]  # (n,) samples, of each series


class Windows(Protocol):
    """The samples of n series that are judged now, and what came before them."""

    @property
    def marks(self) -> Marks:
        """The marks of these samples: (n, samples)."""
        ...

    @property
    def residual(self) -> Float32s:
        """Their residuals."""
        ...

    def count(self, mark: np.uint8, width: Widths) -> NDArray[np.int32]:
        """Return how many samples of each window carry a mark: (n, samples)."""
        ...

    def greatest(self, width: Widths) -> Float32s:
        """Return the greatest known residual of each window; NaN where none is known."""
        ...


class DayWindows:
    """Windows that end with each sample of a day; `marks` and `residual` begin an hour before it."""

    def __init__(self, marks: Marks, residual: Float32s, samples: int) -> None:
        self.marks, self.residual = marks[:, -samples:], residual[:, -samples:]
        self._all_marks, self._all_residuals = marks, residual

    def count(self, mark: np.uint8, width: Widths) -> NDArray[np.int32]:
        """Return how many samples of each window carry a mark: (n, samples)."""
        marks, samples = self._all_marks, self.marks.shape[1]
        carried = np.cumsum((marks & mark) > 0, axis=1, dtype=np.int32)
        total = np.concatenate([np.zeros((len(marks), 1), np.int32), carried], axis=1)
        ends = np.arange(marks.shape[1] - samples, marks.shape[1]) + 1
        begins = np.maximum(0, ends[None, :] - width[:, None])
        counts: NDArray[np.int32] = total[:, ends] - np.take_along_axis(total, begins, axis=1)
        return counts

    def greatest(self, width: Widths) -> Float32s:
        """Return the greatest known residual of each window; NaN where none is known."""
        most = running(np.fmax, self._all_residuals, width)
        return most[:, -self.marks.shape[1] :]


@dataclass(frozen=True, slots=True, eq=False)
class HourWindows:
    """Windows that end with the newest sample of an hour: (samples, n), the newest last."""

    hour: Marks
    residuals: Float32s

    @property
    def marks(self) -> Marks:
        """The marks of the newest sample: (n, 1)."""
        newest: Marks = self.hour[-1][:, None]
        return newest

    @property
    def residual(self) -> Float32s:
        """The newest residuals: (n, 1)."""
        newest: Float32s = self.residuals[-1][:, None]
        return newest

    def count(self, mark: np.uint8, width: Widths) -> NDArray[np.int32]:
        """Return how many samples of each window carry a mark: (n, 1)."""
        carried = (self.hour & mark) > 0
        counts = np.empty((len(width), 1), np.int32)
        for cells in np.unique(width).tolist():  # as many as there are policies, at most
            has_width = width == cells
            counts[has_width, 0] = carried[-cells:, has_width].sum(axis=0, dtype=np.int32)
        return counts

    def greatest(self, width: Widths) -> Float32s:
        """Return the greatest known residual of each window; NaN where none is known."""
        most = np.empty((len(width), 1), np.float32)
        for cells in np.unique(width).tolist():
            has_width = width == cells
            most[has_width, 0] = np.fmax.reduce(self.residuals[-cells:, has_width], axis=0)
        return most


def running(
    extreme: Callable[[Float32s, Float32s], Float32s], values: Float32s, width: Widths
) -> Float32s:
    """Return the least or greatest of the last `width` values of each row, its own width each.

    `extreme` is `np.fmin` or `np.fmax`, which ignore what is not known. The first values of a row have
    shorter windows.
    """
    found = values.copy()
    for cells in np.unique(width).tolist():
        rows = np.flatnonzero(width == cells)
        part = values[rows]
        covered = 1
        while covered < cells:
            shift = min(covered, cells - covered)
            part[:, shift:] = extreme(part[:, shift:], part[:, :-shift])
            covered += shift
        found[rows] = part
    return found

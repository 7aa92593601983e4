"""Which rows of the arrays are whose: one row per partition, those of a topic in a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from service.sandbox.simulator.fleet import Pipeline
from service.sandbox.simulator.occasions import Occasion


class Rows:
    """The partitions of some pipelines, in order."""

    def __init__(self, pipelines: Sequence[Pipeline]) -> None:
        self.pipelines = pipelines
        sizes = [pipeline.partitions for pipeline in pipelines]
        self.pipeline: NDArray[np.int64] = np.repeat(np.arange(len(pipelines)), sizes)
        self.weights = np.concatenate([pipeline.weights for pipeline in pipelines])
        self.count = len(self.pipeline)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self._start = {
            pipeline.index: int(at) for pipeline, at in zip(pipelines, starts, strict=True)
        }
        self._size = {pipeline.index: pipeline.partitions for pipeline in pipelines}

    def of_pipeline(self, index: int) -> slice:
        """Return the rows of a pipeline."""
        return slice(self._start[index], self._start[index] + self._size[index])

    def of(self, occasion: Occasion) -> slice:
        """Return the rows that an occasion of one of the pipelines is about."""
        if occasion.pipeline is None:
            return slice(0, self.count)
        if occasion.partition is None:
            return self.of_pipeline(occasion.pipeline)
        at = self._start[occasion.pipeline] + occasion.partition
        return slice(at, at + 1)

    def each(self, trait: Callable[[Pipeline], float | None]) -> NDArray[np.float64]:
        """Return a trait of each row's pipeline; NaN for None."""
        traits = [trait(pipeline) for pipeline in self.pipelines]
        values = [np.nan if value is None else value for value in traits]
        return np.array(values, dtype=np.float64)[self.pipeline]

    def total(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums of each pipeline's rows."""
        starts = np.array([self._start[pipeline.index] for pipeline in self.pipelines])
        summed: NDArray[np.float64] = np.add.reduceat(values, starts, axis=0)
        return summed

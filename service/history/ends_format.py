"""File format of the remembered end offsets: an .npz archive without pickles.

Packed blocks are written as they are: compressing them would take seconds for a third less. Measured with
10,000 partitions that all move at every observation for six hours: 75 MB in 0.2 s; idle ones take a tenth.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from rules.facts.column import Column, Int64s
from rules.facts.identity import TopicId
from rules.facts.partitions import PartitionIndex, Partitions
from rules.time_lag import EndHistory
from rules.time_lag.block import STOOD, Block
from rules.time_lag.ends import Ends
from rules.time_lag.thinning import Bounds

FORMAT: Final = 1
META: Final = "meta"
TRACKS: Final = ("first_us", "seen_us", "filled_us", "filled_until_us")
OBSERVATIONS: Final = "looks"  # as format 1 names them
BLOCK: Final = ("times_us", "base", "column", "above")

Arrays = dict[str, NDArray[Any]]


class DamagedEndsError(ValueError):
    """The file is damaged, or another version wrote it."""


def write_ends(history: EndHistory, file: IO[bytes]) -> None:
    """Write the remembered ends.

    Raises:
        OSError: the file cannot be written.
    """
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in _arrays_of(history).items():
            with archive.open(name, "w", force_zip64=True) as part:
                np.lib.format.write_array(part, array, allow_pickle=False)


def read_ends(file: IO[bytes], bounds: Bounds) -> EndHistory:
    """Return the remembered ends.

    Raises:
        DamagedEndsError: the file cannot be used.
        OSError: the file cannot be read.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            arrays = {name: _array(archive, name) for name in archive.namelist()}
        return _history(arrays, bounds)
    except (ValueError, KeyError, IndexError, TypeError, EOFError) as exc:
        raise DamagedEndsError(f"{type(exc).__name__}: {exc}") from exc
    except (zipfile.BadZipFile, zlib.error, RuntimeError) as exc:
        raise DamagedEndsError(str(exc)) from exc


def _array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with archive.open(name) as part:
        array: NDArray[Any] = np.lib.format.read_array(part, allow_pickle=False)
        if part.read(1):  # up to the end, where the checksum is
            raise ValueError("more than an array")
    return array


def _arrays_of(history: EndHistory) -> Arrays:
    index = history.partitions.index
    topics = zip(
        index.topics, np.diff(index.starts).tolist(), history.partitions.topic_ids, strict=True
    )
    meta = {
        "format": FORMAT,
        "cluster_id": history.cluster_id,
        "topics": [list(topic) for topic in topics],
        "blocks": [[block.step, block.start_us] for block in history.blocks],
        OBSERVATIONS: [observation.at_us for observation in history.observations],
    }
    arrays: Arrays = {
        META: np.frombuffer(json.dumps(meta).encode(), np.uint8),
        "first_end": history.first_end.values,
        "first_known": history.first_end.valid,
        OBSERVATIONS: np.stack([observation.ends for observation in history.observations]),
    }
    arrays |= {name: getattr(history, name) for name in TRACKS}
    for number, block in enumerate(history.blocks):
        arrays |= {f"{number}.{name}": getattr(block, name) for name in BLOCK}
    return arrays


def _history(arrays: Arrays, bounds: Bounds) -> EndHistory:
    meta = json.loads(arrays[META].tobytes())
    if meta["format"] != FORMAT:
        raise ValueError(f"format {meta['format']}")
    partitions = _partitions(meta["topics"])
    tracks = 2 * len(partitions)
    observations = _ints(arrays[OBSERVATIONS], (len(meta[OBSERVATIONS]), tracks))
    if not len(observations):
        raise ValueError("no observation")
    is_known = arrays["first_known"]
    if is_known.dtype != np.bool_ or is_known.shape != (tracks,):
        raise ValueError("a column of another type or length")
    return EndHistory(
        cluster_id=str(meta["cluster_id"]),
        partitions=partitions,
        first_end=Column(_ints(arrays["first_end"], (tracks,)), is_known),
        **{name: _ints(arrays[name], (tracks,)) for name in TRACKS},
        blocks=tuple(
            _block(arrays, number, int(step), int(start_us), tracks)
            for number, (step, start_us) in enumerate(meta["blocks"])
        ),
        observations=tuple(
            Ends(int(at), ends) for at, ends in zip(meta[OBSERVATIONS], observations, strict=True)
        ),
        bounds=bounds,
    )


def _block(arrays: Arrays, number: int, step: int, start_us: int, tracks: int) -> Block:
    times, base, column, above = (arrays[f"{number}.{name}"] for name in BLOCK)
    if above.ndim != 2 or above.dtype not in (np.uint32, np.uint64):
        raise ValueError("columns of another type or shape")
    if column.dtype != np.int32 or column.shape != (tracks,):
        raise ValueError("a column of another type or length")
    if column.min(initial=STOOD) < STOOD or column.max(initial=STOOD) >= above.shape[1]:
        raise ValueError("a column that is not there")
    return Block(
        step=step,
        start_us=start_us,
        times_us=_ints(times, (above.shape[0],)),
        base=_ints(base, (tracks,)),
        column=column,
        above=above,
    )


def _partitions(topics: list[list[Any]]) -> Partitions:
    """Return partitions with only their names: enough to match them again."""
    index = PartitionIndex.of({str(name): int(count) for name, count, _ in topics})
    return Partitions.named(
        index, [None if topic_id is None else TopicId(topic_id) for _, _, topic_id in topics]
    )


def _ints(array: NDArray[Any], shape: tuple[int, ...]) -> Int64s:
    if array.dtype != np.int64 or array.shape != shape:
        raise ValueError("a column of another type or length")
    return array

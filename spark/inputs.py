"""Inputs of a baseline run, as digests: equal inputs make the same run, so its id is derived from them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from io import SEEK_END
from typing import Final

from rules.baseline.baseline_run import DIGEST_BYTES, ID_BYTES, RUN_FORMAT, BaselineRun, digest_of
from rules.baseline.layout import HISTORY_FILE, bucket_file, day_folder, masks_folder
from rules.baseline.packed import FORMAT
from rules.baseline.policy import BaselineSettings
from rules.baseline.state import FORMAT as STATE_FORMAT
from rules.version import VERSION
from spark.places import Place

CHUNK_BYTES: Final = 1 << 20
READERS: Final = 4  # hashing lets other threads go on


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInputs:
    """One baseline run: what the tasks have to know."""

    history: str  # the folder, as `Place` takes it
    day: date  # civil
    zone: str  # IANA
    buckets: int
    previous: BaselineRun | None  # whose states it continues
    inputs: Mapping[str, str]  # digests of the files of samples and masks, by path

    @property
    def id(self) -> str:
        """Return the id of the run."""
        previous = self.previous
        content = {
            "day": self.day.isoformat(),
            "zone": self.zone,
            "buckets": self.buckets,
            "settings": BaselineSettings().text(),
            "formats": [FORMAT, RUN_FORMAT, STATE_FORMAT],
            "version": VERSION,  # of the formulas
            "previous": None if previous is None else [previous.day.isoformat(), previous.digest],
            "inputs": dict(self.inputs),
        }
        return digest_of(content, ID_BYTES)


def buckets_of(place: Place) -> int:
    """Return into how many buckets a history is cut.

    Raises:
        OSError: there is no history, it cannot be read, is of another format, or is not whole.
    """
    try:
        with place.open(HISTORY_FILE) as source:
            read = json.loads(source.read())
        format_, buckets = read["format"], int(read["buckets"])
        is_whole = bool(read.get("is_whole", True))
    except FileNotFoundError as exc:
        raise OSError(f"there is no history in {place.url}: {HISTORY_FILE} is missing") from exc
    except (ValueError, KeyError, TypeError) as exc:
        raise OSError(f"{HISTORY_FILE} in {place.url} cannot be read: {exc}") from exc
    if format_ != FORMAT:
        message = f"history in {place.url} has the format {format_}, and {FORMAT} is known here"
        raise OSError(message)
    if not is_whole:
        raise OSError(f"history in {place.url} is still being written, or that was broken off")
    return buckets


def inputs_of(place: Place, day: date, buckets: int) -> dict[str, str]:
    """Return a digest of the bytes of every file of samples and of masks of a day, by its path.

    Raises:
        OSError: a file cannot be read at all.
    """
    names = [
        f"{folder}/{file.name}"
        for folder in (day_folder(day), masks_folder(day))
        for file in place.listed(folder)
        if file.name in {bucket_file(bucket) for bucket in range(buckets)}
    ]
    with ThreadPoolExecutor(READERS) as readers:
        digests = list(readers.map(lambda name: _digest(place, name), names))
    return dict(zip(names, digests, strict=True))


def is_as_it_was(place: Place, inputs: RunInputs, name: str) -> bool:
    """Whether a file has the bytes that it had when the run was planned."""
    now = None if place.find(name) is None else _digest(place, name)
    return now == inputs.inputs.get(name)


def _digest(place: Place, name: str) -> str:
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    with place.open(name) as stream:
        size, length = stream.seek(0, SEEK_END), 0
        stream.seek(0)
        while chunk := stream.read(CHUNK_BYTES):
            digest.update(chunk)
            length += len(chunk)
    if length != size:
        raise OSError(f"{name} cannot be read: {length} of its {size} bytes came")
    return digest.hexdigest()

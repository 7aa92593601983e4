"""Which files can be imported, and what is odd about them; nothing but their heads is read."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from spark.history_import.order import CSV, PARQUET, InputFile

NEEDED: Final = ("series", "time", "value")
LABEL: Final = "label"
KNOWN: Final = (*NEEDED, LABEL)
PARQUET_MAGIC: Final = b"PAR1"
GZIP_MAGIC: Final = b"\x1f\x8b"
HEADER_CHARACTERS: Final = 1 << 20
# Names that Spark takes for those of its own files and passes over; a colon, which Hadoop takes for an address.
NOT_READ: Final = re.compile(r"/[_.][^/]*$|\._COPYING_$|:")
SUFFIXES: Final = (".parquet", ".csv", ".csv.gz")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspected:
    """The files of an import."""

    files: tuple[InputFile, ...]
    problems: tuple[str, ...]  # files that are left out, and why
    notes: tuple[str, ...]  # what is ignored


def inspect(paths: Sequence[Path], *, has_zone: bool) -> Inspected:
    """Return which files can be read; a folder stands for the files in it.

    Args:
        paths: of files and folders.
        has_zone: a zone is given for times that name none.
    """
    files: list[InputFile] = []
    problems: list[str] = []
    notes: list[str] = []
    for path in _expand(paths):
        try:
            file, unknown = _inspect(path, has_zone=has_zone)
        except (OSError, ValueError, csv.Error, EOFError, pa.ArrowException) as exc:
            why = getattr(exc, "strerror", None) or str(exc).splitlines()[0]
            problems.append(f"{path} is left out: {why}")
            continue
        files.append(file)
        if unknown:
            notes.append(f"{path}: unknown columns are ignored: {', '.join(unknown)}")
    return Inspected(files=tuple(files), problems=tuple(problems), notes=tuple(notes))


def with_plain_names(files: Sequence[InputFile], folder: Path) -> list[InputFile]:
    """Return the files with names that Spark reads; those that it would not get a link in a folder.

    Raises:
        OSError: a link cannot be made.
    """
    return [
        replace(file, path=str(_link(Path(file.path), folder, place)))
        if NOT_READ.search(file.path)
        else file
        for place, file in enumerate(files)
    ]


def _link(path: Path, folder: Path, place: int) -> Path:
    link = folder / (f"input-{place}.gz" if path.name.endswith(".gz") else f"input-{place}")
    link.symlink_to(path)
    return link


def _expand(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(each for each in path.rglob("*") if each.name.endswith(SUFFIXES))
        else:
            yield path


def _inspect(path: Path, *, has_zone: bool) -> tuple[InputFile, list[str]]:
    with path.open("rb") as file:
        magic = file.read(len(PARQUET_MAGIC))
    where = str(path.absolute())
    if magic == PARQUET_MAGIC:
        schema = pq.read_schema(path)
        unknown = _check(schema.names)
        _check_types(schema, has_zone=has_zone)
        return InputFile(path=where, format=PARQUET), unknown
    names = _header(path, is_packed=magic.startswith(GZIP_MAGIC))
    unknown = _check(names)
    columns = [name if name in KNOWN else f"ignored_{place}" for place, name in enumerate(names)]
    return InputFile(path=where, format=CSV, columns=tuple(columns)), unknown


def _header(path: Path, *, is_packed: bool) -> list[str]:
    # Spark takes a file for packed by its name alone.
    if is_packed != path.name.endswith(".gz"):
        raise ValueError("its name must end with .gz if it is packed, and only then")
    with (
        gzip.open(path, "rt", encoding="utf-8-sig")
        if is_packed
        else path.open(encoding="utf-8-sig") as file
    ):
        line = file.readline(HEADER_CHARACTERS)
    return [name.strip().lower() for name in next(csv.reader([line]), [])]


def _check(names: Sequence[str]) -> list[str]:
    """Return the unknown columns.

    Raises:
        ValueError: a column is missing, or there twice.
    """
    missing = [name for name in NEEDED if name not in names]
    if missing:
        first = ", ".join(names[:8]) or "none"
        raise ValueError(
            f"the column {', '.join(missing)} is missing; needed are {', '.join(NEEDED)}, there are: {first}"
        )
    twice = [name for name in KNOWN if names.count(name) > 1]
    if twice:
        raise ValueError(f"the column {', '.join(twice)} is there twice")
    return [name for name in names if name not in KNOWN]


def _check_types(schema: pa.Schema, *, has_zone: bool) -> None:
    """Raise ValueError if a column cannot hold what it should."""
    is_plain = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal,
        pa.types.is_boolean,
        pa.types.is_timestamp,
        pa.types.is_dictionary,
    )
    for name in KNOWN:
        if name in schema.names and not any(check(schema.field(name).type) for check in is_plain):
            raise ValueError(f"the column {name} is of the type {schema.field(name).type}")
    kind = schema.field("time").type
    if pa.types.is_timestamp(kind) and kind.tz is None and (kind.unit == "ns" or not has_zone):
        advice = "write them with a zone" if kind.unit == "ns" else "give --time-zone"
        raise ValueError(f"its times ({kind}) have no zone: {advice}")

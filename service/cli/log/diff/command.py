"""`tidemark log diff`: what a former leader's copy of a partition has and the new leader lacks."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import click

from rules.facts.identity import TopicPartition
from rules.log_files.missing import Fate
from service.cli.options.kafka_options import kafka_flags, kafka_options
from service.cli.server.report import PLACE
from service.terminal.answer import print_answer
from service.terminal.exit_codes import ExitCode
from service.terminal.formats import output_option
from service.terminal.output import OutputError

if TYPE_CHECKING:
    from service.observe.log_diff.choosing import Copies
    from service.observe.log_diff.sources import Find
    from service.views.log_diff.document import Result, Shown

INCLUDABLE: Final = tuple(str(fate) for fate in Fate if fate not in (Fate.LOST, Fate.NOT_READABLE))
PATH: Final = click.Path(path_type=Path)
NEW_FILE: Final = click.Path(path_type=Path, dir_okay=False)


@click.command("diff")
@click.argument("old", type=PATH)
@click.argument("new", type=PATH, required=False)
@click.option(
    "--partition", metavar="TOPIC-PARTITION",
    help="The partition of a folder that has another name, or the only one to compare.",
)  # fmt: skip
@click.option(
    "--high-watermark", type=click.IntRange(min=0), metavar="OFFSET",
    help="A high watermark that was seen of the old leader: `certain_to` of `tidemark loss show`.",
)  # fmt: skip
@click.option(
    "--compare", type=click.Choice(["headers", "content"]),
    help="content: find records of equal content too; the default where --records is given.",
)  # fmt: skip
@click.option(
    "--records", type=NEW_FILE, metavar="FILE", help="Write lost records as lines of JSON."
)
@click.option(
    "--include", type=click.Choice(INCLUDABLE), multiple=True,
    help="Write records of this fate as well; may be given again.",
)  # fmt: skip
@click.option(
    "--segment", type=NEW_FILE, metavar="FILE",
    help="Write all batches of the copy that the new log lacks, byte for byte.",
)  # fmt: skip
@output_option
@kafka_options
def command(old: Path, new: Path | None, **options: Any) -> int:
    """Compare a former leader's copy with the new leader: what it has that the new one lacks.

    OLD is the folder of a partition that was copied from the broker that led before, or its whole log directory, from
    before the broker rejoined: it truncates then. NEW is such a folder of the new leader; without it the
    leaders of --bootstrap-servers are queried, and nothing is changed there.

    The logs part where Kafka itself would truncate. What the copy has behind that is lost, unless the producer sent the same batch
    again. A wrong "lost" makes duplicates: only what is proven committed, visible to read_committed and not
    there again is written; --include adds what else you decide on.

    \b
    lost                   committed, and not in the new log
    beyond_high_watermark  not in the new log; not known whether it was committed
    not_compared           as lost, but not all of the new log could be read
    possibly_again         a record of equal content is in the new log
    sequence_reused        its sequence is in the new log, with other bytes
    undecided, aborted     of a transaction without an end, or an aborted one
    again                  the same batch is in the new log: not lost

    Exits with 12 if records are lost or may be, with 1 if that cannot be determined, with 0 only if nothing
    is lost. docs/log-files.md says how to produce the records again.

    \b
    Examples:
      tidemark log diff /safe/orders-3 --bootstrap-servers broker-1:9092
      tidemark log diff /safe/orders-3 --bootstrap-servers broker-1:9092 --records orders-3.jsonl
      tidemark log diff /safe/orders-3 /data/kafka/orders-3 --segment orders-3.log -o json
    """  # noqa: D301 - click's \b keeps the lines of the examples apart
    from service.cli.log.diff.tables import parts  # noqa: PLC0415 - keeps `--help` fast
    from service.observe.log_diff.comparing import compare_all  # noqa: PLC0415 - same
    from service.observe.log_diff.writing import write  # noqa: PLC0415 - same

    copies = _copies(old, _name(options["partition"]), is_renamed=True)
    if len(copies) > 1:
        _need_one_partition(options)
    with _finder(copies, new, options) as find, _files(options) as (records, segment):
        by_content = options["compare"] == "content" or (
            options["compare"] is None and options["records"] is not None
        )
        comparisons = compare_all(
            copies, find, high_watermark=options["high_watermark"], by_content=by_content
        )
        shown = [write(each, records, segment, _fates(options)) for each in comparisons]
    result = _result(shown, options)
    print_answer(result.document(), parts(result), options)
    if result.may_be_lost:
        return ExitCode.LOST
    return ExitCode.OK if result.is_ok else ExitCode.INCOMPLETE


def _need_one_partition(options: dict[str, Any]) -> None:
    """Refuse what is of one partition: another one's high watermark would call too much lost."""
    if options["segment"] is not None:
        raise click.UsageError(
            "--segment takes the batches of one partition: name it with --partition."
        )
    if options["high_watermark"] is not None:
        raise click.UsageError("--high-watermark is of one partition: name it with --partition.")


def _name(text: str | None) -> TopicPartition | None:
    if text is None:
        return None
    match = PLACE.fullmatch(text)
    if match is None:
        raise click.BadParameter(f"{text!r} is not TOPIC-PARTITION, such as orders-3")
    return TopicPartition(match[1], int(match[2]))


def _copies(path: Path, name: TopicPartition | None, *, is_renamed: bool = False) -> Copies:
    from service.observe.log_diff.choosing import find_copies  # noqa: PLC0415 - keeps `--help` fast

    try:
        return find_copies(path, name, is_renamed=is_renamed)
    except ValueError as exc:
        raise click.BadParameter(str(exc)) from exc


def _fates(options: dict[str, Any]) -> tuple[Fate, ...]:
    return Fate.LOST, *map(Fate, options["include"])


@contextlib.contextmanager
def _finder(copies: Copies, new: Path | None, options: dict[str, Any]) -> Iterator[Find]:
    """Yield what finds the new log of a partition."""
    from service.observe.log_diff.sources import at_leaders, in_folder  # noqa: PLC0415 - keeps `--help` fast

    if new is not None:
        only = next(iter(copies)) if len(copies) == 1 else None
        yield in_folder(_copies(new, only))
        return
    from service.app.cluster import leader_session  # noqa: PLC0415 - keeps `--help` fast
    from service.settings import read_settings  # noqa: PLC0415 - same

    flags = {"kafka": kafka_flags(options)}
    settings = read_settings(os.environ, path=options["path"], flags=flags)
    with leader_session(settings.kafka) as session:
        yield at_leaders(session)


@contextlib.contextmanager
def _files(options: dict[str, Any]) -> Iterator[tuple[IO[str] | None, IO[bytes] | None]]:
    """Yield the new files for records and for batches, where they are wanted."""
    with contextlib.ExitStack() as stack:
        records, segment = options["records"], options["segment"]
        yield (
            None if records is None else stack.enter_context(_new_file(records, "x")),
            None if segment is None else stack.enter_context(_new_file(segment, "xb")),
        )


@contextlib.contextmanager
def _new_file(path: Path, mode: str) -> Iterator[IO[Any]]:
    """Yield a file that is not there yet.

    Raises:
        OutputError: it cannot be written.
    """
    encoding = None if "b" in mode else "utf-8"
    try:
        with path.open(mode, encoding=encoding) as file:
            yield file
    except FileExistsError as exc:
        raise click.UsageError(f"{path} exists, and is not overwritten: name another file") from exc
    except OSError as exc:
        raise OutputError(f"{path}: {(exc.strerror or str(exc)).lower()}") from exc


def _result(shown: Sequence[Shown], options: dict[str, Any]) -> Result:
    from service.views.log_diff.document import Result  # noqa: PLC0415 - keeps `--help` fast

    records, segment = options["records"], options["segment"]
    return Result(
        shown=shown,
        records_file=None if records is None else str(records),
        segment_file=None if segment is None else str(segment),
        fates=_fates(options),
    )

"""`tidemark log inspect`: what a copied or live log directory holds.

Only click is imported at the top, so that the help answers at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from service.terminal.formats import output_option

PATH: Final = click.Path(path_type=Path, exists=True, readable=False)
MOST: Final = 2**63 - 1
OFFSET: Final = click.IntRange(0, MOST)


@click.command("inspect")
@click.argument("paths", type=PATH, nargs=-1, required=True, metavar="PATH...")
@click.option("--producer-id", type=OFFSET, metavar="N", help="Only what this producer wrote.")
@click.option("--from", "start", type=OFFSET, metavar="OFFSET", help="Only from this offset on.")
@click.option("--to", "end", type=OFFSET, metavar="OFFSET", help="Only before this offset.")
@click.option("--batches", is_flag=True, help="List the headers of all batches.")
@click.option(
    "--records", is_flag=True,
    help="List all records: offset, time, key, sizes. Decompresses them; values are never shown.",
)  # fmt: skip
@click.option(
    "--verify", is_flag=True, help="Compare the checksum of each batch with its bytes, which reads all of them.",
)  # fmt: skip
@output_option
def command(paths: tuple[Path, ...], **options: Any) -> int:
    """Show what the files of a partition hold: transactions, producers, epochs, and what is missing.

    PATH is the folder of a partition, a whole log directory, or a file: a segment (.log), .snapshot, .txnindex,
    leader-epoch-checkpoint, replication-offset-checkpoint, partition.metadata. Copy it from a broker that is
    down, or read a live one: nothing is written, and nothing is locked. Needs no cluster.

    Headers only are read: records are neither decompressed nor shown, except those of __transaction_state
    and __consumer_offsets, which are decoded. What cannot be read is named with its file and byte, and the
    rest is read. A gap is no proof of loss by itself: `tidemark log diff` compares with another replica.

    \b
    OK       it is how this log works: it is compacted
    BREACH   nothing that these files show explains it
    UNKNOWN  what would decide is not in these files

    Exits with 1 if something could not be read, with 6 if nothing of Kafka is there or nothing matches.

    \b
    Examples:
      tidemark log inspect LOG_DIR/orders-3
      tidemark log inspect LOG_DIR
      tidemark log inspect LOG_DIR/orders-3 --batches --from 5 --to 9
      tidemark log inspect LOG_DIR/orders-3 -o json | jq '.logs[].open_transactions'
    """  # noqa: D301 - click's \b keeps the lines of the examples apart
    if options["batches"] and options["records"]:
        raise click.UsageError("--batches and --records are two lists: give one of them")
    if None not in (options["start"], options["end"]) and options["start"] >= options["end"]:
        raise click.UsageError("--from has to be below --to, which is exclusive")
    if options["batches"] or options["records"]:
        from service.cli.log.inspect import listing  # noqa: PLC0415 - keeps `--help` fast

        return listing.print_list(paths, options)
    from service.cli.log.inspect import overview  # noqa: PLC0415 - same

    return overview.print_overview(paths, options)

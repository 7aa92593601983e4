"""`tidemark tx`: which producers have transactions open, which groups they block, and what to do.

It queries the cluster, never the database, but for what needs minutes of rounds (`cost`). Only click is imported at the top: the help answers at once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import click

from rules.transactions.classes import TransactionClass
from service.cli.options.kafka_options import kafka_options, open_reader
from service.cli.server import listing
from service.cli.server.server_options import client_of, optional_server_options, server_options
from service.terminal.answer import print_answer
from service.terminal.formats import output_option
from service.terminal.parameters import DAY_SECONDS, FiniteRange, Regex, TransactionalId
from service.terminal.words import printable

# A partition counts as held when its last stable offset was unchanged for 1.5 s: two rounds have to
# be further apart.
LEAST_INTERVAL: Final = 2.0


@click.group("tx")
def command() -> None:
    """Show open transactions, which groups they block, and what to do about them.

    \b
    Examples:
      tidemark tx ls --bootstrap-servers broker-1:9092
      tidemark tx show payments-7 --bootstrap-servers broker-1:9092
      tidemark tx hanging --bootstrap-servers broker-1:9092
      tidemark tx cost
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


@command.command("ls")
@click.option(
    "--class", "classes", type=click.Choice([str(class_) for class_ in TransactionClass]), multiple=True,
    help="Only of this class; repeat it for more.",
)  # fmt: skip
@click.option(
    "--topic", type=Regex(), help="Only transactions on a topic whose whole name matches."
)
@click.option(
    "--group", type=Regex(), help="Only transactions that block a group whose whole name matches."
)
@output_option
@kafka_options
def ls(**options: Any) -> int:
    """List open transactions: hanging ones first, then by class, the oldest first.

    \b
    open                   within its timeout
    overdue                its timeout is over: its coordinator will abort it
    prepare_commit/_abort  decided: the markers are being written
    marker_not_replicated  the marker is written, and too few replicas have it
    two_phase_commit       open without a limit, by design
    hanging                no coordinator will ever end it
    unknown                not determined; the reason is shown (confirming: `tx hanging` decides)

    * at a partition: this transaction holds its last stable offset. Exits with 1 if something could
    not be observed.

    \b
    Examples:
      tidemark tx ls --bootstrap-servers broker-1:9092
      tidemark tx ls --topic 'orders.*' --class overdue --class hanging
      tidemark tx ls --group billing -o json | jq '.transactions[].transactional_id'
    """  # noqa: D301 - see above
    from service.cli.tx import choosing  # noqa: PLC0415 - keeps `--help` fast
    from service.cli.tx.observing import ClusterObserver, observe_at_once  # noqa: PLC0415 - same

    with open_reader(options) as (reader, _settings):
        observed = observe_at_once(ClusterObserver(reader))
    view = observed.view
    chosen = choosing.Choice(
        classes=frozenset(options["classes"]), topic=options["topic"], group=options["group"]
    )
    transactions = choosing.choose(observed, chosen)
    document = choosing.document(view, transactions)
    print_answer(document, choosing.render(transactions), options)
    return choosing.exit_code(view, chosen, transactions)


@command.command()
@click.argument("transactional_id", type=TransactionalId())
@output_option
@optional_server_options
@kafka_options
def show(transactional_id: str, **options: Any) -> int:
    """Show one transactional id, even if it has no open transaction.

    Shows per partition where its transaction begins, the last stable offset, the high watermark and
    which groups it blocks; then what will happen and what to do. With the address of a running
    Tidemark also who fenced its producers in the last day (a zombie, another instance, its timeout),
    and what applications logged about its producer. Exits with 6 if no coordinator knows the id,
    with 1 if it could not be described.

    \b
    Examples:
      tidemark tx show payments-7 --bootstrap-servers broker-1:9092
      tidemark tx show payments-7 --server http://tidemark:8780
      tidemark tx show payments-7 -o json | jq .described.state
    """  # noqa: D301 - see above
    from service.cli.tx import showing  # noqa: PLC0415 - keeps `--help` fast
    from service.cli.tx.fencing import fetch_fencing  # noqa: PLC0415 - same

    with open_reader(options) as (reader, _settings):
        shown = showing.fetch(reader, transactional_id)
    shown = replace(shown, fencing=fetch_fencing(options, shown.transactional_id))
    if options["server"] is not None:
        shown = showing.with_application_errors(shown, lambda: client_of(options))
    print_answer(showing.document(shown), showing.render(shown), options)
    for line in showing.error(shown):
        click.echo(f"tidemark: {printable(line)}", err=True)
    return showing.exit_code(shown)


@command.command()
@click.option(
    "--interval", type=FiniteRange(LEAST_INTERVAL, DAY_SECONDS), default=LEAST_INTERVAL,
    show_default=True, metavar="SECONDS",
    help="From the start of one round to the start of the next.",
)  # fmt: skip
@output_option
@kafka_options
def hanging(**options: Any) -> int:
    """Find transactions that no coordinator will ever end, with proof and the command for repair.

    Makes three rounds: a partition is held, its leader has a transaction open that no coordinator
    lists, and so it is in the next round. Two are enough if nothing is held, and more are made while
    a coordinator moves. It aborts nothing. Needs READ on the topics (to describe their producers)
    and DESCRIBE on every transactional id; it reports what it cannot determine, and what to do.

    Exits with 11 if a transaction hangs, with 1 if not everything could be observed, with 0 only if
    everything was observed and nothing hangs.

    \b
    Examples:
      tidemark tx hanging --bootstrap-servers broker-1:9092
      tidemark tx hanging --interval 5 -o json | jq -r '.hanging[].repair'
    """  # noqa: D301 - see above
    from service.cli.tx import proof  # noqa: PLC0415 - same
    from service.cli.tx.observing import ClusterObserver, find_hanging  # noqa: PLC0415 - same
    from service.runtime import clock  # noqa: PLC0415 - keeps `--help` fast

    due = clock.monotonic()

    def begin(number: int, total: int) -> None:
        """Print the round to stderr, and wait until it is due."""
        nonlocal due
        click.echo(f"round {number} of {total} ...", err=True)
        clock.pause(max(due - clock.monotonic(), 0.0))
        due = clock.monotonic() + options["interval"]

    with open_reader(options) as (reader, settings):
        observed = find_hanging(ClusterObserver(reader), begin=begin)
    conclusion = proof.conclude(observed)
    is_secured = settings.security_protocol != "PLAINTEXT"
    parts = proof.render(conclusion, is_secured=is_secured)
    print_answer(proof.document(conclusion), parts, options)
    return conclusion.exit_code


@command.command()
@click.option(
    "--transactional-id", metavar="ID", help="Only this transactional id; * matches any text."
)
@click.option(
    "--coordinator", type=click.IntRange(min=0), metavar="BROKER",
    help="Only ids of this coordinator, by its broker id.",
)  # fmt: skip
@listing.limit_option
@server_options
def cost(**options: Any) -> int:
    """Show what transactions cost: how many, how small, and how long their markers take.

    Queries a running `tidemark serve` that reads `__transaction_state`; its window is the last five to
    ten minutes. docs/transaction-cost.md has the thresholds and the settings to change.

    \b
    records each      mean; shared: of all ids that write to the same partitions
    bytes each        by samples of batches, as compressed as they are
    share of markers  of the offsets that its transactions use
    log records/s     written to __transaction_state, three per transaction at least
    marker mean, p99  from the coordinator's decision to the last marker

    Exits with 1 if not all transactions could be read.

    \b
    Examples:
      tidemark tx cost
      tidemark tx cost --transactional-id 'billing-*'
      tidemark tx cost -o json | jq '.coordinators[] | {coordinator, transactional_ids}'
    """  # noqa: D301 - see above
    from service.cli.tx import costs  # noqa: PLC0415 - keeps `--help` fast

    return costs.show(options)

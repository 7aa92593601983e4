"""Query a service or the brokers for the verdicts on events of lines; the environment alone names no brokers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
from click.core import ParameterSource

from collectors.naming import counted
from service.cli.options.kafka_options import asks_brokers, open_reader
from service.cli.sequence import verdicts
from service.cli.sequence.explaining import Reading
from service.cli.sequence.verdicts import Answers
from service.cli.server.server_options import client_of


def ask(content: Reading, options: Mapping[str, Any], answers: Answers) -> None:
    """Add the answers of those that options name; nothing is queried if there is no event.

    Raises:
        TidemarkError: it cannot be reached, or rejects us; what answered before is in `answers`.
    """
    if content.events and options["server"] is not None:
        _ask_service(content, options, answers)
    if content.events and asks_brokers(options):
        _ask_brokers(content, options, answers)


def _ask_service(content: Reading, options: Mapping[str, Any], answers: Answers) -> None:
    """Query a running Tidemark; its blind spots are errors if it does not know an event."""
    with client_of(options) as api:
        report = verdicts.fetch_report(api, content.events)
    answers.take("service", report.rows)
    rows = verdicts.add_verdicts(content.events, answers.rows)
    unknown = sum(row[verdicts.BY] in verdicts.ALONE for row in rows)
    if unknown:
        message = f"{report.server} does not know {counted(unknown, 'event')} of these"
        answers.errors += [message, *(f"  {line}" for line in report.errors)]


def _ask_brokers(content: Reading, options: Mapping[str, Any], answers: Answers) -> None:
    """Make a few rounds over a cluster."""
    from service.cli.sequence import observing  # noqa: PLC0415 - keeps `--help` fast

    source = click.get_current_context().get_parameter_source("time_zone")
    is_zone_given = source is not ParameterSource.DEFAULT
    with open_reader(options) as (reader, _settings):
        observed = observing.observe(reader, content.events, is_zone_given=is_zone_given)
    answers.take("brokers", observed.rows)
    answers.errors += [f"not seen: {gap.what}: {gap.why}" for gap in observed.gaps]

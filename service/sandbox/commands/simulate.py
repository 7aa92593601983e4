"""`tidemark sandbox history`: weeks of simulated history, to try baselines on.

Only click is imported here at the top: the help has to answer at once.
"""

from __future__ import annotations

import os
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from service.sandbox.simulator.defaults import CLUSTER, SERIES, STEPS, WEEKS, ZONES
from service.terminal.answer import print_json
from service.terminal.exit_codes import ExitCode
from service.terminal.formats import output_option

if TYPE_CHECKING:
    from service.sandbox.simulator.simulation import Simulation
    from service.sandbox.simulator.writing import Written

YEARS: Final = range(2000, 2100)
MEGA: Final = 1e6


@click.command("history")
@click.option(
    "--weeks", type=click.IntRange(1, 104), default=WEEKS, show_default=True, help="How many."
)
@click.option(
    "--series",
    type=click.IntRange(1, 1_000_000),
    default=SERIES,
    show_default=True,
    help="How many.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="The same number makes the same weeks.",
)
@click.option(
    "--step",
    type=click.Choice([str(step) for step in STEPS]),
    default="30",
    show_default=True,
    metavar="SECONDS",
    help="Between two samples: 5 to 300, a divisor of 300.",
)
@click.option(
    "--zone",
    "zones",
    multiple=True,
    metavar="ZONE",
    help="IANA zones of the people who cause the traffic; days are those of the first one, where "
    f"most live. May be repeated.  [default: {', '.join(ZONES)}]",
)
@click.option(
    "--end",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DATE",
    help="The last day.  [default: yesterday]",
)
@click.option(
    "--history",
    "url",
    metavar="URL",
    help="Folder to write to, local or of an object store; nothing else should be in it.  "
    "[default: ~/.local/state/tidemark/simulated-history]",
)
@click.option(
    "--cluster",
    default=CLUSTER,
    show_default=True,
    help="Its name: a service whose kafka.name is the same shows what baseline runs have learnt from it.",
)
@click.option("--replace", is_flag=True, help="Remove simulated weeks that are there already.")
@click.option(
    "--dry-run", is_flag=True, help="Show what would happen in those weeks; write nothing."
)
@output_option
def command(*, zones: tuple[str, ...], end: datetime | None, output: str, **options: Any) -> int:
    """Write weeks of history of a cluster that does not exist, with the truth about its incidents.

    Pipelines with days and weeks of several zones, nightly jobs, deploys, rebalances, growth and
    shifts of level; and incidents, each with its exact time: slow consumers, dead partitions,
    poison pills, producers that stop or write three times as much, errors, stuck transactions, and
    outages of the collector. simulation/labels.json below the folder lists all of it.

    \b
    Examples:
      tidemark sandbox history --weeks 8 --series 300 --seed 7
      tidemark sandbox history --zone Europe/Berlin --end 2026-11-15 --replace
      tidemark sandbox history --dry-run -o json
    """  # noqa: D301 - click's \b keeps the lines of the examples apart
    from service.runtime import clock  # noqa: PLC0415 - help stays fast
    from service.sandbox.simulator.simulation import Simulation, SimulationRequest  # noqa: PLC0415 - same

    begin = clock.monotonic()
    chosen = zones or ZONES
    request = SimulationRequest(
        seed=options["seed"],
        cluster=options["cluster"],
        series=options["series"],
        weeks=options["weeks"],
        end=_last_day(end) if end else _yesterday(chosen[0]),
        step_seconds=int(options["step"]),
        zones=_check_zones(chosen),
    )
    simulation = Simulation(request)
    url = options["url"] or str(_default_folder())
    written = None if options["dry_run"] else _write(simulation, url, replace=options["replace"])
    seconds = clock.monotonic() - begin
    if output == "json":
        print_json(_document(simulation, url, written, seconds), indent=2)
    else:
        _print(simulation, url, written, seconds)
    return ExitCode.OK


def _check_zones(zones: tuple[str, ...]) -> tuple[str, ...]:
    from rules.baseline.civil import civil_day  # noqa: PLC0415 - help stays fast

    for zone in zones:
        try:
            civil_day(date(2026, 1, 1), zone)
        except ValueError as exc:
            raise click.UsageError(str(exc)) from exc
    return tuple(dict.fromkeys(zones))


def _last_day(end: datetime) -> date:
    if end.year not in YEARS:
        raise click.UsageError(f"--end: {end.date()} is not between 2000 and 2099")
    return end.date()


def _yesterday(zone: str) -> date:
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - help stays fast

    from service.runtime import clock  # noqa: PLC0415 - same

    (name,) = _check_zones((zone,))
    return clock.utc_now().astimezone(ZoneInfo(name)).date() - timedelta(days=1)


def _default_folder() -> Path:
    """Return a folder of this user, by the XDG convention; the service's own history is elsewhere."""
    home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local/state")
    return Path(home) / "tidemark/simulated-history"


def _write(simulation: Simulation, url: str, *, replace: bool) -> Written:
    from service.sandbox.simulator.writing import (  # noqa: PLC0415 - help stays fast
        was_broken_off,
        write_history,
    )

    if was_broken_off(url):
        click.echo(f"{url} was not finished: its weeks are made from the start", err=True)
    last = simulation.request.end

    def progress(day: date, samples: int) -> None:
        done = simulation.request.days.index(day) + 1
        if done % 7 == 0 or day == last:
            line = f"{done} of {len(simulation.request.days)} days, {samples / MEGA:.1f} M samples"
            click.echo(line, err=True)

    return write_history(simulation, url, replace=replace, progress=progress)


def _document(
    simulation: Simulation, url: str, written: Written | None, seconds: float
) -> dict[str, Any]:
    from service.sandbox.simulator.writing import labels_of  # noqa: PLC0415 - help stays fast

    return {
        "history": url,
        "is_written": written is not None,
        "samples": None if written is None else written.samples,
        "bytes": None if written is None else written.bytes,
        "seconds": round(seconds, 1),
        "simulated": labels_of(simulation),
    }


def _print(simulation: Simulation, url: str, written: Written | None, seconds: float) -> None:
    from collectors.naming import counted  # noqa: PLC0415 - help stays fast

    request = simulation.request
    days = request.days
    done = "Would simulate" if written is None else "Simulated"
    click.echo(
        f"{done} {counted(request.weeks, 'week')}, {days[0]} to {days[-1]}, every {request.step_seconds} s: "
        f"{len(simulation.series)} series of {counted(len(simulation.pipelines), 'pipeline')}"
    )
    click.echo(f"  incidents  {_count_kinds(simulation, are_incidents=True)}")
    click.echo(f"  ordinary   {_count_kinds(simulation, are_incidents=False)}")
    click.echo(f"  not seen   {counted(len(simulation.outages), 'outage')} of the collector")
    click.echo(f"  clocks     {_describe_clocks(simulation)}")
    if written is not None:
        from service.sandbox.simulator.writing import LABELS_FILE  # noqa: PLC0415 - help stays fast

        click.echo(
            f"  written    {written.samples / MEGA:.1f} M samples, {written.bytes / MEGA:.1f} MB, "
            f"in {seconds:.1f} s\n  history    {url}\n  the truth  {url}/{LABELS_FILE}"
        )
        click.echo(
            f"\nTry:\n  tidemark nightly run --history {url} --date {days[-1]}\n"
            f"  tidemark baselines ls --topic 'orders*'   asks a running `tidemark serve --cluster {request.cluster}`"
        )


def _count_kinds(simulation: Simulation, *, are_incidents: bool) -> str:
    counts = Counter(
        occasion.kind.value
        for occasion in simulation.occasions
        if occasion.is_incident is are_incidents
    )
    parts = [f"{count} {kind.replace('_', ' ')}" for kind, count in sorted(counts.items())]
    return ", ".join(parts) or "none"


def _describe_clocks(simulation: Simulation) -> str:
    changes = simulation.clock_changes()
    dates = [f"{zone} on {datetime.fromtimestamp(at / 1000, UTC).date()}" for zone, at in changes]
    return "are changed in " + ", ".join(dates) if dates else "not changed in these weeks"

"""`tidemark config`: the settings in effect, and the source of each. It connects to nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rules.errors import SettingsError
from service.cli.serve import serve_flags, serve_options
from service.terminal.answer import print_columns, print_json
from service.terminal.formats import output_option
from service.terminal.words import ABSENT

if TYPE_CHECKING:
    from service.settings import Sourced


@click.group("config")
def command() -> None:
    """Show the settings that are in effect, or an example of a settings file.

    \b
    Examples:
      tidemark config check --config tidemark.toml
      tidemark config example > tidemark.toml
    """  # noqa: D301 - click's \b keeps the lines of the examples apart


@command.command()
@serve_options
@output_option
def check(**options: Any) -> None:
    """Read the settings as `tidemark serve` would; print each value and its source.

    Takes the options of `serve`. Secrets are shown as ***. Settings that are valid but probably wrong
    are warned of on stderr, and by `serve` in its log. Exits with 0, or with 3 if a setting cannot
    be used: addresses, certificates, the format of the database URL, a data directory that is not
    a folder or cannot be written or created. It creates nothing and connects to nothing.

    \b
    Examples:
      tidemark config check --config /etc/tidemark/tidemark.toml --host 0.0.0.0
      TIDEMARK_SERVICE__INTERVAL_SECONDS=30 tidemark config check
      tidemark config check -o json | jq '.settings[] | select(.source != "default")'
    """  # noqa: D301 - see above
    from service.settings import read_sourced  # noqa: PLC0415 - keeps `--help` fast
    from service.settings.advice import warnings  # noqa: PLC0415 - same

    sourced = read_sourced(os.environ, path=options["path"], flags=serve_flags(options))
    odd = warnings(sourced.settings)
    _print(sourced, odd, as_json=options["output"] == "json")
    for warning in odd:
        click.echo(f"warning: {warning}", err=True)
    _require_usable(sourced)


@command.command()
def example() -> None:
    """Print a tidemark.toml in which every setting is explained and none is changed.

    \b
    Examples:
      tidemark config example > tidemark.toml
      tidemark config example | grep -A 30 '\\[http\\]'
    """  # noqa: D301 - see above
    from service.settings.page import example_file  # noqa: PLC0415 - keeps `--help` fast

    click.echo(example_file(), nl=False)


def _print(sourced: Sourced, odd: Sequence[str], *, as_json: bool) -> None:
    from service.settings.entries import effective, written  # noqa: PLC0415 - keeps `--help` fast

    rows = list(effective(sourced))
    if as_json:
        settings = [{"key": key, "value": value, "source": source} for key, value, source in rows]
        print_json({"settings": settings, "warnings": odd}, indent=2)
        return
    print_columns(
        [(key, ABSENT if value is None else written(value), source) for key, value, source in rows]
    )


def _require_usable(sourced: Sourced) -> None:
    """Reject the settings that a service would reject when it builds its clients.

    Raises:
        SettingsError: addresses, certificates, the data directory, or settings that contradict each
            other.
    """
    from rules.catalogue.all_rules import EVERY  # noqa: PLC0415 - keeps `--help` fast
    from service.app import bootstrap_addresses  # noqa: PLC0415 - keeps `--help` fast

    bootstrap_addresses(sourced.settings.kafka.bootstrap_servers)
    sourced.settings.kafka.security().ssl_context()
    require_usable(sourced.settings.service.data_dir)
    sourced.settings.alerting.config({rule.meta.rule_id: rule.meta for rule in EVERY})


def _may_write(folder: Path) -> bool:
    return os.access(folder, os.W_OK | os.X_OK)


def require_usable(folder: str, *, may_write: Callable[[Path], bool] = _may_write) -> None:
    """Reject a folder that a service could neither use nor create; nothing is created or locked.

    Whether another service has locked it is not checked: settings are also checked while the service
    that uses them runs.

    Raises:
        SettingsError: the text names the folder and the reason.
    """
    if "\0" in folder:  # Python reports such a path as missing, and cannot create it
        raise SettingsError(f"data directory {folder!r} is not a usable path")
    try:
        path = Path(folder).expanduser().absolute()
        there = next(part for part in (path, *path.parents) if part.exists() or part.is_symlink())
        is_folder = there.is_dir()
    except OSError as exc:  # a folder that we may not even inspect
        reason = (exc.strerror or str(exc)).lower()
        raise SettingsError(f"data directory {folder} cannot be used: {reason}") from exc
    except RuntimeError as exc:
        raise SettingsError(f"data directory {folder}: that user has no home") from exc
    doing = "used" if there == path else "created"
    if not is_folder:
        raise SettingsError(f"data directory {path} cannot be {doing}: {there} is not a folder")
    if not may_write(there):
        raise SettingsError(f"data directory {path} cannot be {doing}: {there} cannot be written")

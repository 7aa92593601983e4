"""Settings of Spark's own, from the settings file and from `--conf`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from service.settings.nightly import NightlySettings

master_option: Final = click.option(
    "--master", metavar="URL", help="Spark's master  [default: local[*]]"
)
conf_option: Final = click.option(
    "--conf",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of Spark's own; give it again for more.",
)


def spark_conf(nightly: NightlySettings, pairs: Sequence[str]) -> dict[str, str]:
    """Return Spark's settings; those of `--conf`, NAME=VALUE each, win. A wrong one is a usage error."""
    for pair in pairs:
        if "=" not in pair or not pair.startswith("spark."):
            raise click.BadParameter(f"{pair!r} is not a setting like spark.executor.memory=2g")
    conf = {"spark.driver.memory": nightly.driver_memory}
    conf |= {setting.name: setting.value for setting in nightly.conf}
    return conf | dict(pair.split("=", 1) for pair in pairs)

"""Settings of the baseline run: when it runs, and on which Spark."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from service.settings.values import Group, Tables, in_form


class SparkSetting(Group):
    """One of Spark's own settings."""

    name: Annotated[str, Field(pattern=r"^spark\.[\w.-]+$", max_length=200)]
    """Its name, like spark.executor.memory."""

    value: Annotated[str, Field(max_length=10_000)]
    """Its value, as Spark writes it."""


class NightlySettings(Group):
    """Baselines of every series are learnt once a day, by Spark; see docs/baselines.md."""

    enabled: bool = True
    """Whether `tidemark serve` makes baseline runs. Default: true; turn it off where something else runs
    `tidemark nightly run`, or where Spark or Java is not installed."""

    at: Annotated[str, in_form(r"([01]\d|2[0-3]):[0-5]\d", 'write a time of day like "02:30"')] = (
        "02:30"
    )
    """Time of day in the zone of history (history.time_zone). Default: when the last hour of
    yesterday is surely folded, and most clusters are quiet."""

    master: Annotated[str, Field(min_length=1, max_length=1000)] = "local[*]"
    """Spark's master, like spark://host:7077. Default: all cores of this machine, in processes of their
    own, so that nothing has to be set up; any other master must reach the folder of history."""

    conf: Annotated[
        Tables[SparkSetting], Field(examples=[[{"name": "spark.executor.memory", "value": "4g"}]])
    ] = ()
    """List of tables, as [[nightly.conf]] in the file or as a JSON list in the environment: name, value.
    They win over what Tidemark sets, and reach Spark by a file that only its user can read. Default: none, as
    one machine needs none."""

    driver_memory: Annotated[
        str, in_form(r"[1-9]\d*[mg]", 'write an amount of memory like "1g" or "512m"')
    ] = "1g"
    """Memory of Spark's JVM. Default: enough for any number of series, because the JVM only hands out
    tasks; each core's Python process needs about 0.3 GB beside it."""

    timeout_seconds: Annotated[float, Field(ge=60, le=86_400)] = 14_400.0
    """Seconds after which `tidemark nightly run` is broken off; finished baseline runs stay. Default: four
    hours, some 15 million series-days, and short enough to be over before people come."""

    keep_days: Annotated[int, Field(ge=2, le=365)] = 3
    """Days whose runs are kept in the folder of history, about 20 kB per series and day. Default: as
    many as the database keeps to roll back to; the next baseline run needs the last one."""

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        if len({setting.name for setting in self.conf}) < len(self.conf):
            raise ValueError("a setting of nightly.conf is given twice")
        return self

    @property
    def hour_and_minute(self) -> tuple[str, str]:
        """Return the time of day as a trigger takes it."""
        hour, minute = self.at.split(":")
        return str(int(hour)), str(int(minute))

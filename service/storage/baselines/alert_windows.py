"""Windows in which alerts were open, as the nightly job must not learn from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertWindow:
    """One stretch of one alert, from the beginning of the breach to its end."""

    begin: datetime  # aware, UTC
    end: datetime  # excluded
    labels: Mapping[str, str]


def alert_windows(
    engine: Engine, cluster: str, begin: datetime, end: datetime
) -> list[AlertWindow]:
    """Return the windows of alerts that fired, warning or worse, cut to [begin, end).

    Args:
        engine: of a database whose schema is at head.
        cluster: the configured name.
        begin: aware; of a civil day in UTC.
        end: excluded; what is still open ends here.

    Raises:
        StoreError: the database is away.
    """
    raise NotImplementedError

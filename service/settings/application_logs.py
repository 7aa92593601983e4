"""Settings of application log lines sent over HTTP: what each one means, and why its default."""

from __future__ import annotations

from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from service.settings.values import Group

MOST_PER_MINUTE: Final = 100_000_000


class ApplicationLogSettings(Group):
    """Log lines of applications, sent by shippers (docs/application-log.md)."""

    max_lines_per_minute: Annotated[int, Field(ge=1, le=MOST_PER_MINUTE)] = 600_000
    """Most lines in a minute of all senders together; beyond it requests get 429. Default: 10,000 a
    second; ordinary lines of that many take between a tenth and a third of a core."""

    max_lines_per_minute_of_sender: Annotated[int, Field(ge=1, le=MOST_PER_MINUTE)] = 300_000
    """Likewise of one sender: a token and the address it is sent from. Default: half of the total, so that
    one application that writes stack traces without end leaves room for the others."""

    max_problems: Annotated[int, Field(ge=10, le=100_000)] = 1_000
    """Most distinct problems of a cluster that are kept apart; beyond it those of one meaning are
    counted together, without names. Default: 1,000, a few MB in memory and in the database."""

    @model_validator(mode="after")
    def _sender_has_no_more_than_all(self) -> Self:
        """Reject a limit that could never be reached."""
        if self.max_lines_per_minute_of_sender > self.max_lines_per_minute:
            message = (
                "application_logs.max_lines_per_minute_of_sender is above max_lines_per_minute"
            )
            raise ValueError(message)
        return self

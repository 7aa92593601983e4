"""A transactional id as a parameter of a command."""

from __future__ import annotations

from typing import Any, Final

import click

from service.cli.terminal.words import printable

# Of a string in Kafka's protocol: a broker closes the connection at a longer one.
MAX_BYTES: Final = 32_767


class TransactionalId(click.ParamType[str]):
    """An id that a broker can describe."""

    name = "ID"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the id; it must not be empty, too long or invalid UTF-8."""
        text = str(value)
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            self.fail(f"'{printable(text)}' is not UTF-8.", param, ctx)
        if not size:
            self.fail("it is empty.", param, ctx)
        if size > MAX_BYTES:
            self.fail(f"it has {size:,} bytes, more than {MAX_BYTES:,}.", param, ctx)
        return text

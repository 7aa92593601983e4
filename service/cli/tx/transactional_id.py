"""A transactional id as it is typed."""

from __future__ import annotations

from typing import Any, Final

import click

from service.cli.terminal.printable import printable

MAX_BYTES: Final = 32_767  # of a string in Kafka's protocol: a broker hangs up at a longer one


class TransactionalId(click.ParamType[str]):
    """An id that a broker can be asked for."""

    name = "ID"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the id; a broker has never heard of one that is empty, too long or no UTF-8."""
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

"""The drawings of the pages, by their paths below docs/: `make golden` writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.site.drawings.epochs import draw_epochs
from tests.site.drawings.flow import draw_flow, draw_notification
from tests.site.drawings.offsets import draw_offsets
from tests.site.drawings.sequences import draw_sequences
from tests.site.drawings.transactions import draw_hanging, draw_transaction

DRAWINGS: Final[Mapping[str, str]] = {
    "concepts/offsets.svg": draw_offsets(),
    "concepts/leader-epochs.svg": draw_epochs(),
    "concepts/sequences.svg": draw_sequences(),
    "concepts/transaction.svg": draw_transaction(),
    "concepts/hanging.svg": draw_hanging(),
    "flow.svg": draw_flow(),
    "internals/notification.svg": draw_notification(),
}

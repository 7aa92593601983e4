"""Parameters of the list of deliveries."""

from __future__ import annotations

from service.api.core.queries import PageQuery, Word
from service.api.deliveries.models import DeliveryState


class DeliveryQuery(PageQuery):
    """Which deliveries."""

    receiver: Word | None = None
    state: DeliveryState | None = None

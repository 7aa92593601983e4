"""Settings of runbooks, which `tidemark runbook` reads."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from service.settings.values import Group


class RunbooksSettings(Group):
    """Where an operator's own runbooks are."""

    dir: Annotated[str | None, Field(min_length=1, examples=["/etc/tidemark/runbooks"])] = None
    """Folder of runbooks named <rule id>.md, each of which comes before the one that is part of Tidemark;
    `tidemark runbook check` checks it. Default: none, and those of Tidemark are used."""

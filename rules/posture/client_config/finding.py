"""Makes lines of posture for clients' files, by the checks that name the same settings of running clients.

Further checks are of files alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from rules.posture.checks import (
    client_acks,
    client_auto_commit,
    client_delivery_timeout,
    client_idempotence,
    client_in_flight,
    client_isolation,
    client_retries,
    client_transactional_id,
)
from rules.posture.client_config.clients import Client
from rules.posture.client_config.reasons import WORDS, Why
from rules.posture.line import PostureCheck, PostureLine, PostureScope
from rules.verdict import Severity, Verdict

Release = tuple[int, int, int]
# Of 3.0 and 3.1 the first releases differ from the later ones: a release without its last number is a later one.
LATER: Final = 99
NEWEST: Final[Release] = (4, 4, LATER)
IDEMPOTENT_BY_DEFAULT: Final[Release] = (3, 0, 0)
KAFKA_4_0: Final[Release] = (4, 0, 0)
# KAFKA-13598: idempotence stayed off although its default had become true.
WITH_DEFAULT_LOST: Final = frozenset({(3, 0, 0), (3, 1, 0)})
PAGE: Final = "posture-client-config.md"  # below docs/
PLACEHOLDERS: Final = ("${", "$(", "{{", "%(", "<<")


def _check(id_: str, setting: str, summary: str) -> PostureCheck:
    return PostureCheck(check_id=id_, scope=PostureScope.CLIENT, setting=setting, summary=summary)


IDEMPOTENCE: Final = client_idempotence.CHECK
ACKS: Final = client_acks.CHECK
IN_FLIGHT: Final = client_in_flight.CHECK
RETRIES: Final = client_retries.CHECK
DELIVERY: Final = client_delivery_timeout.CHECK
ISOLATION: Final = client_isolation.CHECK
AUTO_COMMIT: Final = client_auto_commit.CHECK
# Batches only suggest that it is missing; in a file it is wrong where the client does not start.
TRANSACTIONAL_ID: Final = replace(client_transactional_id.CHECK, severity=Severity.WARNING)
TIMEOUT: Final = _check(
    "client_transaction_timeout",
    "transaction.timeout.ms",
    "The brokers allow the timeout, and batches end before it.",
)
GUARANTEE: Final = _check(
    "client_processing_guarantee", "processing.guarantee", "Kafka Streams writes results once."
)
SOURCE_SUPPORT: Final = _check(
    "client_exactly_once_source",
    "exactly.once.source.support",
    "Kafka Connect writes once what sources give.",
)
NAMES: Final = _check("client_setting_names", "", "Every name is that of a setting.")
CHECKS: Final = (
    IDEMPOTENCE, ACKS, IN_FLIGHT, RETRIES, DELIVERY, TIMEOUT, TRANSACTIONAL_ID, ISOLATION, AUTO_COMMIT, GUARANTEE, SOURCE_SUPPORT, NAMES,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigLine:
    """A line of posture with the line of the file; None: the setting is not in it."""

    posture: PostureLine
    source: str
    at: int | None

    @property
    def key(self) -> tuple[str, str, str]:
        """Return what it is about."""
        return self.posture.name, self.posture.check.check_id, self.posture.setting


@dataclass(slots=True, kw_only=True)
class Judging:
    """One client while it is judged: for one library, and one release if it is Java's."""

    client: Client
    release: Release = NEWEST
    is_exactly_once_meant: bool = False
    is_made_idempotent: bool = (
        False  # its framework sets enable.idempotence=true, whatever the file says
    )
    lines: list[ConfigLine] = field(default_factory=list)

    def add(  # noqa: PLR0913 - the parts of one line, by name
        self,
        check: PostureCheck,
        why: Why,
        *,
        setting: str | None = None,
        detail: str = "",
        right: str = "",
        is_mild: bool = False,
    ) -> None:
        """Add a line; what is mild is only information unless the files show that exactly-once is meant."""
        name = setting or check.setting
        own = self.client.settings.get(name)
        words, fill = WORDS[why], {"detail": detail, "right": right}
        line = PostureLine(
            check=check,
            name=self.client.name,
            setting=name,
            value=None if why is Why.NOT_A_SETTING else self.client.value(name),
            source=None,
            verdict=words.verdict,
            reason=why,
            consequence=words.consequence.format_map(fill).strip(),
            fix=words.fix.format_map(fill),
            is_mild=is_mild and not self.is_exactly_once_meant,
        )
        self.lines.append(
            ConfigLine(
                posture=line, source=self.client.source, at=None if own is None else own.line
            )
        )

    def is_hidden(self, name: str) -> bool:
        """Whether the value of a setting is not in the file, but a reference to it."""
        value = self.client.value(name)
        return value is not None and any(mark in value for mark in PLACEHOLDERS)

    def number(self, name: str, default: int) -> int:
        """Return a number; its default if it is not set, or is none."""
        value = self.client.value(name)
        try:
            return default if value is None else int(value)
        except ValueError:
            return default

    def flag(self, name: str) -> bool | None:
        """Return true or false; None if it is not set, or is neither."""
        return {"true": True, "false": False}.get((self.client.value(name) or "").lower())


def unite(java: list[ConfigLine], librdkafka: list[ConfigLine]) -> Iterator[ConfigLine]:
    """Yield the lines of a client that may be of either library: what they do not agree on is UNKNOWN.

    A library without a line for a setting finds nothing wrong with it.
    """
    others = {line.key: line for line in librdkafka}
    for line in java:
        twin = others.pop(line.key, None)
        if line.posture.verdict == (Verdict.OK if twin is None else twin.posture.verdict):
            yield line
        else:
            yield _depending(line, "Java", twin, "librdkafka")
    for line in others.values():
        is_right = line.posture.verdict is Verdict.OK
        yield line if is_right else _depending(line, "librdkafka", None, "Java")


def _depending(line: ConfigLine, library: str, twin: ConfigLine | None, other: str) -> ConfigLine:
    wrong = line if line.posture.verdict is not Verdict.OK else (twin or line)
    whose = library if wrong is line else other
    words = WORDS[Why.DEPENDS_ON_LIBRARY]
    detail = f"For {whose}: {wrong.posture.consequence or 'it is right.'}"
    return replace(
        wrong,
        posture=replace(
            wrong.posture,
            verdict=words.verdict,
            reason=Why.DEPENDS_ON_LIBRARY,
            consequence=words.consequence.format_map({"detail": detail}),
        ),
    )

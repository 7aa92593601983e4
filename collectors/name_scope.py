"""The names that a settings' pattern can match, in the form that Kafka's ACLs have: all, a prefix, or one name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

EVERY: Final = "*"
_PLAIN: Final = re.compile(r"(?:[A-Za-z0-9_-]|\\[.\-_])*")  # matches itself only
_QUANTIFIERS: Final = "?*+{"


class PatternType(StrEnum):
    """Pattern types of KIP-290, as Kafka's tool names them."""

    LITERAL = "literal"
    PREFIXED = "prefixed"


@dataclass(frozen=True, slots=True)
class NameScope:
    """The resources that one ACL covers."""

    pattern_type: PatternType = PatternType.LITERAL
    name: str = EVERY

    @property
    def prefix(self) -> str:
        """Return what each name begins with."""
        return "" if self.is_every else self.name

    @property
    def is_every(self) -> bool:
        """Whether it covers all names."""
        return self.pattern_type is PatternType.LITERAL and self.name == EVERY

    @property
    def is_single(self) -> bool:
        """Whether it covers one name."""
        return self.pattern_type is PatternType.LITERAL and self.name != EVERY

    def covers(self, name: str) -> bool:
        """Whether a name is covered."""
        return name == self.name if self.is_single else name.startswith(self.prefix)


def scope_of(pattern: re.Pattern[str] | None) -> NameScope:
    """Return the narrowest scope that covers every name that a pattern can match; None matches all."""
    text = EVERY if pattern is None else pattern.pattern
    if pattern is None or "|" in text or pattern.flags & re.IGNORECASE:
        return NameScope()
    plain = _PLAIN.match(text)
    head, rest = ("", text) if plain is None else (plain.group(), text[plain.end() :])
    name = head.replace("\\", "")
    if not rest and name:
        return NameScope(PatternType.LITERAL, name)
    prefix = name[:-1] if rest[:1] in _QUANTIFIERS else name
    return NameScope(PatternType.PREFIXED, prefix) if prefix else NameScope()

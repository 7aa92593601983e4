"""Masks secrets in texts of applications' logs before they are stored or shown.

Applications log their settings, addresses and headers; what seems to be a secret there is replaced, also where it is
none. Names of Kafka (topics, groups, client ids) stay as they are.
"""

from __future__ import annotations

import re
from typing import Final

MASK: Final = "***"
_NAMES: Final = (
    r"pass(?:word|wd|phrase)?|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?|"
    r"jaas\.config|signature|session[_-]?id|cookie"
)
_VALUE: Final = r"(?:\"[^\"\n]{0,4000}\"?|'[^'\n]{0,4000}'?|[^\s;&)\]}]{1,4000})"
_ASSIGNED: Final = re.compile(
    rf"(?P<name>(?:{_NAMES})(?:[_-]?(?:key|value|id))?s?\"?\s{{0,3}}(?:=>|[=:])\s{{0,3}})(?!null\b|None\b|\[hidden\]){_VALUE}",
    re.IGNORECASE,
)
_SCHEME: Final = re.compile(
    r"\b(?P<name>Bearer|Basic|Digest|ApiKey) [\w.~+/=-]{8,4000}", re.IGNORECASE
)
_IN_ADDRESS: Final = re.compile(
    r"(?P<name>[a-z][a-z0-9+.-]{1,20}://)[^\s/@]{1,500}@", re.IGNORECASE
)
_BY_FORM: Final = re.compile(
    r"\beyJ[\w-]{8,4000}\.[\w-]{2,4000}(?:\.[\w-]{0,4000})?|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|"
    r"\b(?:gh[pousr]|glpat|xox[abprs]|sk|tidemark)[_-][\w-]{16,400}|-----BEGIN [A-Z ]{0,40}KEY-----[^\n]{0,8000}"
)
# The whole of a JAAS line is a secret: user names, passwords and options.
_JAAS: Final = re.compile(r"(?P<name>jaas\.config\s{0,3}[=:]\s{0,3})[^\n]{1,4000}", re.IGNORECASE)


# What a text has to hold for any of these; nearly no line does.
_WORTH: Final = re.compile(
    rf"{_NAMES}|bearer|basic|digest|apikey|://|eyJ|AKIA|ASIA|-----|gh[pousr]_|glpat|xox[abprs]|sk[_-]|tidemark[_-]",
    re.IGNORECASE,
)


def masked(text: str) -> str:
    """Return a text with *** in place of what seems to be a secret."""
    if _WORTH.search(text) is None:
        return text
    text = _JAAS.sub(rf"\g<name>{MASK}", text)
    text = _SCHEME.sub(rf"\g<name> {MASK}", text)
    text = _IN_ADDRESS.sub(rf"\g<name>{MASK}@", text)
    text = _BY_FORM.sub(MASK, text)
    return _ASSIGNED.sub(rf"\g<name>{MASK}", text)

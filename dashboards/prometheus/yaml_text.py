"""A rule file as YAML that a person can read: expressions as they were written, prose wrapped."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from dashboards.prometheus.rule import AlertingRule, RecordingRule, Rule, RuleFile, RuleGroup

WIDTH: Final = 110
_TEMPLATE: Final = re.compile(r"\{\{.*?\}\}")
_NO_BREAK: Final = "\N{NO-BREAK SPACE}"
_SECONDS: Final = (("h", 3600), ("m", 60), ("s", 1))


def render(file: RuleFile, docs_url: str) -> str:
    """Return the text of a rule file; `docs_url` is the address at which the folder docs/ is served."""
    about = textwrap.wrap(file.about, WIDTH - 2)
    lines = [*(f"# {line}" for line in about), "groups:"]
    for group in file.groups:
        lines += _group(group, docs_url)
    return "\n".join(lines) + "\n"


def duration(value: timedelta) -> str:
    """Return a duration of whole seconds in Prometheus' notation, such as 1m30s."""
    left, text = round(value.total_seconds()), ""
    for unit, size in _SECONDS:
        many, left = divmod(left, size)
        text += f"{many}{unit}" if many else ""
    return text or "0s"


def _group(group: RuleGroup, docs_url: str) -> Iterator[str]:
    yield f"  - name: {group.name}"
    if group.interval is not None:
        yield f"    interval: {duration(group.interval)}"
    yield "    rules:"
    for place, rule in enumerate(group.rules):
        if place:
            yield ""
        yield from _rule(rule, docs_url)


def _rule(rule: Rule, docs_url: str) -> Iterator[str]:
    match rule:
        case RecordingRule():
            yield f"      - record: {rule.record}"
            yield from _expression(rule.expr)
        case AlertingRule():
            yield f"      - alert: {rule.alert}"
            yield from _expression(rule.expr)
            yield from _waits(rule)
            yield from _mapping("labels", rule.all_labels)
            yield from _mapping("annotations", rule.annotations(docs_url))


def _waits(rule: AlertingRule) -> Iterator[str]:
    for key, wait in (("for", rule.for_), ("keep_firing_for", rule.keep_firing_for)):
        if wait:
            yield f"        {key}: {duration(wait)}"


def _expression(text: str) -> Iterator[str]:
    yield "        expr: |-"
    yield from (f"          {line}" for line in text.splitlines())


def _mapping(key: str, values: Mapping[str, str]) -> Iterator[str]:
    yield f"        {key}:"
    for name, value in values.items():
        quoted = f"          {name}: {json.dumps(value, ensure_ascii=False)}"  # JSON's strings are YAML's
        yield from [quoted] if len(quoted) <= WIDTH else _folded(name, value)


def _folded(name: str, value: str) -> Iterator[str]:
    """Yield a long text as a folded block, which YAML joins by single spaces; no template is divided."""
    yield f"          {name}: >-"
    text = _TEMPLATE.sub(lambda match: match[0].replace(" ", _NO_BREAK), value)
    for line in textwrap.wrap(text, WIDTH - 12, break_long_words=False, break_on_hyphens=False):
        yield f"            {line.replace(_NO_BREAK, ' ')}"

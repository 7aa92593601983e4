"""The page of all alerts and recorded series of Prometheus, generated for docs/."""

from __future__ import annotations

from collections.abc import Iterator

from dashboards.prometheus.files import FILES
from dashboards.prometheus.recording import RECORDING
from dashboards.prometheus.rule import AlertingRule, RecordingRule, RuleFile
from dashboards.prometheus.yaml_text import duration

_INTRODUCTION = """# Alerts and recorded series of Prometheus

Generated from `dashboards/prometheus/` by `make golden`; a test compares. [prometheus-rules.md](prometheus-rules.md)
says which file to load when. `$labels` and `$value` are those of the alert.
"""


def alerts_page() -> str:
    """Return the page as Markdown."""
    parts = [_INTRODUCTION]
    for file in FILES:
        parts += _alerts(file)
    return "\n".join([*parts, *_records(RECORDING)])


def _alerts(file: RuleFile) -> Iterator[str]:
    rules = [rule for rule in file.rules if isinstance(rule, AlertingRule)]
    if rules:
        yield f"## `{file.name}`\n"
    for rule in rules:
        yield f"### {rule.alert}\n"
        yield f"{rule.summary}.\n"
        yield f"{rule.description}\n"
        yield f"Severity {_severity(rule)}, {_wait(rule)}.{_rule_page(rule)}\n"
        yield f"```promql\n{rule.expr}\n```\n"


def _severity(rule: AlertingRule) -> str:
    return "of its findings" if "$labels" in rule.severity else str(rule.severity)


def _wait(rule: AlertingRule) -> str:
    return f"after {duration(rule.for_)}" if rule.for_ else "at once"


def _rule_page(rule: AlertingRule) -> str:
    return f" What to do: [{rule.page}]({rule.page})." if rule.page else ""


def _records(file: RuleFile) -> Iterator[str]:
    yield f"## `{file.name}`\n"
    for rule in file.rules:
        if isinstance(rule, RecordingRule):
            yield f"- `{rule.record}`"
    yield ""

"""The committed rule files and their page are what the code makes, and YAML reads them as they were meant."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from ruamel.yaml import YAML

from dashboards.prometheus.files import DOCS_URL, FILES, STACK_FOLDERS
from dashboards.prometheus.page import alerts_page
from dashboards.prometheus.rule import AlertingRule, Rule, RuleFile, RuleGroup
from dashboards.prometheus.yaml_text import duration, render
from service.cli.main import run
from service.terminal.exit_codes import ExitCode

PAGE: Final = Path(__file__).parents[4] / "docs" / "prometheus-alerts.md"
each_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)


@each_file
def test_the_committed_file_is_what_the_code_makes(file: RuleFile) -> None:
    committed = STACK_FOLDERS[file.name] / file.name
    assert committed.read_text(encoding="utf-8") == render(file, DOCS_URL), "make golden"


def test_the_page_is_what_the_code_makes() -> None:
    assert PAGE.read_text(encoding="utf-8") == alerts_page(), "make golden"


@each_file
def test_the_text_is_read_as_the_rules_that_it_was_made_of(file: RuleFile) -> None:
    document = YAML(typ="safe").load(render(file, DOCS_URL))
    assert document == {"groups": [group_document(group) for group in file.groups]}


def group_document(group: RuleGroup) -> dict[str, Any]:
    interval = {} if group.interval is None else {"interval": duration(group.interval)}
    return {"name": group.name, **interval, "rules": [document_of(rule) for rule in group.rules]}


def document_of(rule: Rule) -> dict[str, Any]:
    if not isinstance(rule, AlertingRule):
        return {"record": rule.record, "expr": rule.expr}
    waits = {"for": rule.for_, "keep_firing_for": rule.keep_firing_for}
    return {
        "alert": rule.alert,
        "expr": rule.expr,
        **{key: duration(wait) for key, wait in waits.items() if wait},
        "labels": rule.all_labels,
        "annotations": rule.annotations(DOCS_URL),
    }


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (30, "30s"), (90, "1m30s"), (300, "5m"), (3600, "1h")]
)
def test_a_duration_is_in_the_notation_of_prometheus(seconds: int, text: str) -> None:
    assert duration(timedelta(seconds=seconds)) == text


def test_files_with_an_address_of_ones_own_are_written_to_any_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "rules"
    words = [
        "dashboards",
        "rules",
        str(folder),
        "--docs-url",
        "https://docs.acme.example/tidemark/",
    ]
    assert run(words) == ExitCode.OK
    assert capsys.readouterr().out.splitlines() == [str(folder / file.name) for file in FILES]
    alerting = (folder / "tidemark_alerting.yml").read_text(encoding="utf-8")
    assert '"https://docs.acme.example/tidemark/rules/partition_offline.md"' in alerting
    assert DOCS_URL not in alerting

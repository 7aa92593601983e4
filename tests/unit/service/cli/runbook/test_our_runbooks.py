"""Every rule has a page, a runbook, and a fault or a reason; every command of a runbook exists."""

from __future__ import annotations

import ast
import importlib.util
import re
from functools import cache
from pathlib import Path
from typing import Final

import click
import pytest

from rules.catalogue.all_rules import EVERY
from service.cli.main import tidemark
from service.cli.runbook.checking import Checked, check_file
from service.cli.runbook.library import OURS, read, rule_ids
from service.cli.runbook.surroundings import Surroundings
from service.runbooks.commands import (
    CHANGING,
    OF_CLUSTER,
    OF_NOTHING,
    OF_SERVER,
    Effect,
    fill,
    placeholders_of,
)
from service.runbooks.filling import LABELS, OF_ALERT
from service.runbooks.form import KEYS, BlockKind, Prose, Runbook
from service.runbooks.kafka_tools import KAFKA_TOOLS, form_of
from service.sandbox.cluster.tools import TOOLS
from service.sandbox.faults import FAULTS

DOCS: Final = OURS.parent
RULES: Final = rule_ids()
DECLARED: Final = {rule.meta.rule_id: rule for rule in EVERY}
AT: Final = Surroundings(bootstrap_servers="b1:9092", of_server=("--server", "http://t:1"))
INLINE: Final = re.compile(r"`((?:tidemark|kafka-[a-z-]+\.sh) [^`]*(?:\{|--)[^`]*)`")
RULE_NAMES: Final = re.compile(r"\b(?:runbooks?|rules?|finding) ((?:[a-z]+_[a-z_]+(?:, | and )?)+)")
LINK: Final = re.compile(r"\bdocs/([a-z_/-]+\.md)")
# Files of rules that write evidence; what they import of the vocabulary (rules.facts) writes none.
WRITERS: Final = ("rules.catalogue", "rules.fencing", "rules.loss", "rules.sequence", "rules.transactions", "rules.unusual", "rules.by_group")  # fmt: skip


@cache
def runbook_of(rule: str) -> Runbook:
    return read(OURS / f"{rule}.md", RULES)


def names_of(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.md")}


def test_every_rule_has_a_page_and_a_runbook_and_there_are_no_others() -> None:
    assert names_of(OURS) == set(RULES) == names_of(DOCS / "rules")


def test_every_rule_has_a_fault_or_a_reason_why_there_is_none() -> None:
    made = {rule for fault in FAULTS.values() for rule in fault.rules}
    assert {rule for rule in RULES if "fault" in runbook_of(rule).facts} == made
    for rule in RULES:
        facts = runbook_of(rule).facts
        if "fault" in facts:
            assert rule in FAULTS[facts["fault"]].rules, rule
        else:
            assert len(facts["no_fault"]) > 20, rule


def test_the_page_of_faults_names_rules_that_the_registry_has() -> None:
    lines = (DOCS / "sandbox-faults.md").read_text(encoding="utf-8").splitlines()
    rows = [line.split("|") for line in lines if line.startswith("| `")]
    assert len(rows) == len(FAULTS)
    for row in rows:
        named = set(re.findall(r"`([a-z]+_[a-z_]+)`", row[3])) & set(RULES)
        if not row[3].strip().startswith("none"):
            assert named <= set(FAULTS[row[1].strip(" `")].rules), row


@pytest.mark.parametrize("rule", RULES)
def test_the_runbook_is_of_the_form_and_its_front_matter_is_whole(rule: str) -> None:
    assert check_file(OURS / f"{rule}.md", RULES) == Checked()
    facts, meta = runbook_of(rule).facts, DECLARED[rule].meta
    assert facts["severity"] == meta.severity
    assert set(KEYS) - set(facts) in ({"fault"}, {"no_fault"})
    text = (OURS / f"{rule}.md").read_text(encoding="utf-8")
    assert not re.search(r"\b(TODO|TBD|FIXME)\b", text)


@pytest.mark.parametrize("rule", RULES)
def test_a_mitigation_is_no_diagnosis_and_is_known(rule: str) -> None:
    for block in runbook_of(rule).blocks():
        for line in block.commands:
            command = fill(line, {})
            if block.kind is BlockKind.DIAGNOSIS:
                assert command.effect is Effect.READS, line
            elif command.effect is not Effect.CHANGES:  # a person runs it by hand
                assert command.blanks, line


@pytest.mark.parametrize("rule", RULES)
def test_every_command_parses(rule: str) -> None:
    for block in runbook_of(rule).blocks():
        for line in block.commands:
            require_parses(line, rule)
    for item in (item for items in runbook_of(rule).sections.values() for item in items):
        for line in INLINE.findall("\n".join(item.lines)) if isinstance(item, Prose) else ():
            require_parses(line, rule)


def require_parses(line: str, rule: str) -> None:
    command = fill(line, dict.fromkeys(placeholders_of(line), "1") | {"fingerprint": "0" * 16})
    words = AT.complete(command)
    if words[0] == "tidemark":
        context_of(words[1:])
    elif command.kafka_tool is not None:
        assert form_of(command.kafka_tool, command.words[1:]) is not None, (rule, line)
    else:
        assert words[0] == "cp", (rule, line)


def context_of(words: tuple[str, ...]) -> click.Context:
    """Parse a command line of ours as far as its function, which is not called."""
    command: click.Command = tidemark
    context, left = click.Context(tidemark, info_name="tidemark"), list(words)
    while isinstance(command, click.Group):
        name = left.pop(0)
        found = command.get_command(context, name)
        assert found is not None, words
        command = found
        context = command.make_context(
            name, [] if isinstance(command, click.Group) else left, parent=context,
            resilient_parsing=isinstance(command, click.Group),
        )  # fmt: skip
    return context


@pytest.mark.parametrize("path", sorted(OF_SERVER | OF_CLUSTER | OF_NOTHING | CHANGING))
def test_the_commands_that_may_run_exist(path: tuple[str, ...]) -> None:
    context = click.Context(tidemark, info_name="tidemark")
    group = tidemark.get_command(context, path[0])
    if isinstance(group, click.Group):
        assert path[1] in group.commands
    else:
        assert isinstance(group, click.Command)
        assert {*path[1:]} <= {name for each in group.params for name in each.opts}


def test_the_tools_are_those_that_the_sandbox_has() -> None:
    assert {name: tool.queries_brokers for name, tool in KAFKA_TOOLS.items()} == {
        name: TOOLS[name].asks_brokers for name in KAFKA_TOOLS
    }


@pytest.mark.parametrize("rule", RULES)
def test_a_value_that_begins_like_an_option_stays_a_value(rule: str) -> None:
    for block in runbook_of(rule).blocks():
        for line in block.commands:
            words = line.split()
            starts = [place for place, word in enumerate(words) if word.startswith("{")]
            is_ours = words[0] == "tidemark"
            assert all("--" in words[:place] or not is_ours for place in starts) or (
                words[1:3] == ["alerts", "close"]  # by a fingerprint, which is of digits
            ), line
            assert is_ours or not starts, line


@pytest.mark.parametrize("rule", RULES)
def test_placeholders_are_those_that_a_finding_of_the_rule_has(rule: str) -> None:
    text = (OURS / f"{rule}.md").read_text(encoding="utf-8")
    labels = LABELS[DECLARED[rule].meta.subject]
    evidence = evidence_names(f"rules.catalogue.{rule}")
    assert placeholders_of(text) <= labels | set(OF_ALERT) | evidence


@cache
def evidence_names(module: str) -> frozenset[str]:
    """Return the keys that a module of rules writes, and those that it imports for that."""
    names, left, seen = set[str](), [module], set[str]()
    while left:
        name = left.pop()
        spec = importlib.util.find_spec(name)
        if name in seen or spec is None or spec.origin is None:
            continue
        seen.add(name)
        tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
        names |= set(keys_of(tree))
        left += [
            node.module
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(WRITERS)
            if node.module is not None
        ]
    return frozenset(names)


def keys_of(tree: ast.Module) -> list[str]:
    """Return the keys of dicts and the fields of classes."""
    keys = [key for node in ast.walk(tree) if isinstance(node, ast.Dict) for key in node.keys]
    keys += [node.slice for node in ast.walk(tree) if isinstance(node, ast.Subscript)]
    fields = [
        part.target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for part in node.body
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
    ]
    constants = [key.value for key in keys if isinstance(key, ast.Constant)]
    return [value for value in constants if isinstance(value, str)] + fields


@pytest.mark.parametrize("rule", RULES)
def test_rules_and_pages_that_are_named_exist(rule: str) -> None:
    text = (OURS / f"{rule}.md").read_text(encoding="utf-8")
    for names in RULE_NAMES.findall(text):
        assert set(re.findall(r"[a-z]+_[a-z_]+", names)) <= set(RULES), names
    for page in LINK.findall(text):
        assert (DOCS / page).exists(), page

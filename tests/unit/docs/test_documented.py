"""Every command of the pages is run by a test, or its page says what it needs; nothing of that is stale."""

from __future__ import annotations

import re
from typing import Final

import pytest

from service.terminal.exit_codes import ExitCode
from tests.site.commands import ShellLine, lines_of_block, shell_lines
from tests.site.documented import (
    BEFORE,
    COVERED,
    EXPECTED,
    NEEDS,
    SUBSTITUTIONS,
    Covered,
    covered_by,
    expected_codes,
    is_run,
    needed_by,
    setup_of,
    substituted,
)
from tests.site.hooks import ROOT
from tests.site.pages import DOCS, Block, pages

LINES: Final = shell_lines()
PROSE_TARGET: Final = re.compile(r"`make ([a-z][a-z-]*)[^`]*`")


def test_what_cannot_run_here_is_marked_on_its_page() -> None:
    pages_lines = [line for line in LINES if not line.page.startswith("tidemark ")]
    unmarked = [line for line in pages_lines if needed_by(line) - line.needs]
    assert unmarked == [], "put <!-- needs: ... --> right before the block"
    assert [line for line in LINES if line not in pages_lines and needed_by(line)] == []


def test_what_could_run_is_not_marked() -> None:
    used: dict[tuple[str, frozenset[str]], frozenset[str]] = {}
    for line in LINES:
        if line.needs:
            block = (line.page, line.needs)
            used[block] = used.get(block, frozenset()) | needed_by(line)
    assert {block: found for block, found in used.items() if found != block[1]} == {}


def test_most_commands_run_as_they_stand() -> None:
    assert sum(is_run(line) for line in LINES) > 0.6 * len(LINES)


@pytest.mark.parametrize("covered", COVERED, ids=lambda covered: covered.pattern)
def test_what_another_test_runs_is_there(covered: Covered) -> None:
    assert any(covered_by(line) is covered for line in LINES), "no page has such a command any more"
    assert covered.mention in (ROOT / covered.test).read_text(encoding="utf-8")


def test_every_row_of_the_tables_is_used() -> None:
    texts = [line.text for line in LINES if is_run(line)]
    unused = [each.pattern for each in EXPECTED if not _matches(each.pattern, texts)]
    unused += [pattern for pattern in BEFORE if not _matches(pattern, texts)]
    for pattern, replacement in SUBSTITUTIONS:
        replaced = [re.sub(pattern, replacement, each) for each in texts]
        if replaced == texts:
            unused.append(pattern)
        texts = replaced
    assert unused == []
    assert set(NEEDS) == set().union(*(line.needs for line in LINES))


def test_an_expected_exit_code_is_documented_for_its_command() -> None:
    rows = dict(re.findall(r"(?m)^\| (\d+) \| (.*) \|$", (DOCS / "exit-codes.md").read_text()))
    assert {int(code) for code in rows} == {code.value for code in ExitCode}
    for line in LINES:
        command = re.search(r"tidemark (?:--\S+ \S+ )?(\w+)", line.text)
        for code in expected_codes(line.text) - {ExitCode.OK}:
            assert code not in {ExitCode.USAGE, ExitCode.SETTINGS}
            assert command
            assert f"`{command[1]}" in rows[str(code)], f"{line.text}: {code}"


def test_every_target_of_make_that_is_named_is_there() -> None:
    targets = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8")))
    areas = re.search(r"(?m)^TEST := (.*)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert areas
    named = {
        name
        for page in pages()
        if page.name != "CHANGELOG.md"
        for name in PROSE_TARGET.findall(page.read_text(encoding="utf-8"))
    }
    assert named - targets - set(areas[1].split()) == set()
    assert {"demo", "test", "golden"} <= named


def test_lines_are_read_as_a_shell_reads_them() -> None:
    text = "# a comment\ntidemark a   # why\n\ntidemark b \\\n  --c\n"
    assert [line.text for line in lines_of_block(Block("p.md", 4, "sh", text))] == [
        "tidemark a",
        "tidemark b --c",
    ]
    console = Block("p.md", 4, "console", "$ tidemark a\nprinted\n")
    assert [(line.line, line.text) for line in lines_of_block(console)] == [(5, "tidemark a")]
    assert list(lines_of_block(Block("p.md", 4, "text", text))) == []


def test_example_names_become_real_ones() -> None:
    line = "tidemark tx ls --bootstrap-servers broker-1:9092 --config /etc/tidemark/tidemark.toml"
    assert substituted(line, {"bootstrap": "127.0.0.1:5", "workspace": "/x"}) == (
        "tidemark tx ls --bootstrap-servers 127.0.0.1:5 --config /x/etc/tidemark/tidemark.toml"
    )
    assert substituted("jq '.a[] | {topic, partition}'", {}) == "jq '.a[] | {topic, partition}'"
    assert setup_of("tidemark token revoke prometheus") is not None
    assert needed_by(ShellLine("p.md", 1, "sudo docker run")) == {"root", "docker"}


def _matches(pattern: str, texts: list[str]) -> bool:
    return any(re.fullmatch(pattern, text) for text in texts)

"""How a runbook is read, and what its errors name."""

from __future__ import annotations

import pytest

from service.runbooks.form import SECTIONS, Block, BlockKind, Prose, RunbookError, parse

RULES = ("transaction_hanging", "partition_offline")
FRONT = "---\nrule: transaction_hanging\nseverity: critical\n---\n# title\n\n"
BLOCK = "```sh diagnosis when=hanging,confirming\n# why\ntidemark tx hanging\n```\n\nExpect: two\nlines.\n\nAfter.\n"


def text(front: str = FRONT, **bodies: str) -> str:
    return front + "".join(f"## {name}\n\n{bodies.get(name, 'Words.')}\n\n" for name in SECTIONS)


def test_a_block_has_its_commands_its_reasons_and_what_it_shows() -> None:
    runbook = parse(text(Diagnosis=f"Before.\n\n{BLOCK}"), "x.md", RULES)
    before, block, after = runbook.sections["Diagnosis"]
    assert isinstance(block, Block)
    assert (before, after) == (Prose(lines=("Before.",)), Prose(lines=("After.",)))
    assert block.kind is BlockKind.DIAGNOSIS
    assert block.commands == ("tidemark tx hanging",)
    assert block.expect == "two lines."
    assert [block.is_for(reason) for reason in ("hanging", "lost", None)] == [True, False, True]
    assert text(Diagnosis=f"Before.\n\n{BLOCK}").splitlines()[block.line - 1].startswith("```sh")


def test_a_heading_inside_a_block_is_no_section() -> None:
    fenced = "```\n## Escalation\n```"
    runbook = parse(text(Impact=fenced), "x.md", RULES)
    assert runbook.sections["Impact"] == (Prose(lines=tuple(fenced.split("\n"))),)


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        pytest.param("# title\n", "x.md:1: front matter is missing", id="no front matter"),
        pytest.param("---\nrule: partition_offline\n", "x.md:2: .*has no end", id="no end of it"),
        pytest.param("---\nseverity: info\n---\n", "x.md:1: .*no rule", id="no rule"),
        pytest.param(
            "---\nrule: transaction_hangs\n---\n",
            "no rule 'transaction_hangs'; did you mean transaction_hanging",
            id="unknown rule",
        ),
        pytest.param(
            "---\nseverty: info\n---\n", "x.md:2: 'severty'.*did you mean severity", id="typo"
        ),
        pytest.param(
            "---\nrule: partition_offline\nseverity: high\n---\n",
            "severity 'high' is none of critical",
            id="unknown severity",
        ),
        pytest.param(
            "---\nrule: partition_offline\nfault: a\nno_fault: b\n---\n",
            "fault and no_fault exclude",
            id="fault and none",
        ),
        pytest.param(FRONT + "## Meaning\n", "its sections are Meaning; they have", id="sections"),
        pytest.param(text(Impact="```\nx"), "a block has no end", id="open block"),
        pytest.param(
            text(Diagnosis="```sh diagnosis\nls\n```\n"),
            r"x.md:\d+: what the block shows is missing",
            id="no Expect",
        ),
        pytest.param(
            text(Diagnosis="```sh diagnosis\n# ls\n```\nExpect: a\n"),
            "the block has no command",
            id="no command",
        ),
        pytest.param(
            text(Diagnosis="```sh diagnose\nls\n```\nExpect: a\n"),
            "a block is tagged `sh diagnosis` or `sh mitigation`",
            id="unknown tag",
        ),
    ],
)
def test_an_error_names_file_line_and_what_is_wrong(broken: str, error: str) -> None:
    with pytest.raises(RunbookError, match=error):
        parse(broken, "x.md", RULES)

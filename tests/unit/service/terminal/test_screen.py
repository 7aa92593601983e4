"""Tables that are too wide for a screen."""

from __future__ import annotations

import pytest

from service.terminal.parts import Table, short
from tests.unit.service.cli.printing import printed


@pytest.mark.parametrize(
    ("name", "title"),
    [("3", "producer 3"), ("orders-3", "orders-3")],
    ids=["a number means nothing by itself", "a name does"],
)
def test_a_row_that_does_not_fit_is_a_block_below_its_first_cell(name: str, title: str) -> None:
    table = Table(
        columns=(short("producer", "name"), short("kind")),
        rows=[{"name": name, "kind": "transactional"}],
    )
    assert printed([table], width=12).splitlines()[0] == title


def test_a_table_that_fits_has_a_line_per_row() -> None:
    table = Table(columns=(short("producer", "name"),), rows=[{"name": "3"}, {"name": "4"}])
    assert [line.strip() for line in printed([table]).splitlines()] == ["producer", "3", "4"]

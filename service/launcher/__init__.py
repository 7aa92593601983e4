"""What an installed Tidemark shows to other packages: this one alone, under the name `tidemark`.

A wheel holds the folders of the repository below it, in `_tree`, where nobody else's import finds them; the
console script puts that folder before all others. docs/decisions/0010-one-name-in-site-packages.md says why.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

TREE: Final = Path(__file__).with_name("_tree")  # in a wheel alone, not in an editable install


def main() -> None:
    """Run the command line, with the modules of this installation and no others of their names."""
    if TREE.is_dir():
        sys.path.insert(0, str(TREE))
    from service.__main__ import main as run  # noqa: PLC0415 - found by the line above

    run()

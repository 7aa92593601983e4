"""Named Tidemarks of a user: address and token of each, in a file that only its owner may read.

The file is $XDG_CONFIG_HOME/tidemark/contexts.json (~/.config/tidemark/contexts.json). A token is the file's only
where it came from standard input; otherwise the file names where the token is, so that rotating it needs no change.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from rules.errors import SettingsError
from service.terminal.typed_names import complete_name, not_there

FOLDER: Final = "tidemark"
FILE: Final = "contexts.json"
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One Tidemark, and where its token comes from: one of three places, or none."""

    name: str
    server: str  # as `--server` has it, without a slash at its end
    token: str | None = field(default=None, repr=False)
    token_file: str | None = None
    token_variable: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contexts:
    """The contexts of a user, and which of them commands use by default."""

    current: str | None = None
    by_name: Mapping[str, Context] = field(default_factory=dict)

    def named(self, name: str) -> Context:
        """Return the context of this name, or, at a terminal, whose name alone begins so.

        Raises:
            NotThereError: there is none.
            RequestError: several begin so.
        """
        whole = complete_name(name, self.by_name, "context", hint=self._names, verb="using")
        return self.by_name[whole]

    @property
    def _names(self) -> str:
        return f"contexts: {', '.join(sorted(self.by_name)) or 'none yet'}"

    def with_context(self, context: Context) -> Contexts:
        """Return the contexts with one more, or another one of its name; the first one is current."""
        return replace(
            self,
            current=self.current or context.name,
            by_name={**self.by_name, context.name: context},
        )

    def without(self, name: str) -> Contexts:
        """Return the contexts without one, by its whole name.

        Raises:
            NotThereError: there is none of this name.
        """
        if name not in self.by_name:
            raise not_there(name, list(self.by_name), "context", hint=self._names)
        rest = {key: context for key, context in self.by_name.items() if key != name}
        return Contexts(current=None if self.current == name else self.current, by_name=rest)

    def using(self, name: str) -> Contexts:
        """Return the contexts with another current one; errors are those of `named`."""
        return replace(self, current=self.named(name).name)


def contexts_path(environment: Mapping[str, str]) -> Path:
    """Return the path of the file, by the XDG convention: a folder that is not absolute is ignored."""
    folder = environment.get("XDG_CONFIG_HOME", "")
    home = Path(folder) if Path(folder).is_absolute() else Path("~/.config").expanduser()
    return home / FOLDER / FILE


def read_contexts(path: Path) -> Contexts:
    """Return the contexts of a file; none if there is no file.

    Raises:
        SettingsError: the file cannot be read, others may read its tokens, or it has no such form.
    """
    try:
        with path.open(encoding="utf-8") as file:
            is_open = bool(os.fstat(file.fileno()).st_mode & OTHERS)
            document = json.load(file)
        contexts = _contexts_of(document)
    except FileNotFoundError:
        return Contexts()
    except OSError as exc:
        raise SettingsError(f"contexts {path}: {(exc.strerror or str(exc)).lower()}") from exc
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as exc:
        raise SettingsError(f"contexts {path}: not a file of `tidemark context`") from exc
    if is_open and any(context.token for context in contexts.by_name.values()):
        raise SettingsError(f"contexts {path}: others may read its tokens; chmod 600 {path}")
    return contexts


def write_contexts(path: Path, contexts: Contexts) -> None:
    """Replace the file in one step; only its owner may read it.

    Raises:
        SettingsError: it cannot be written.
    """
    document = {
        "current": contexts.current,
        "contexts": {
            name: {key: value for key, value in asdict(context).items() if key != "name" and value}
            for name, context in sorted(contexts.by_name.items())
        },
    }
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - of a descriptor
            json.dump(document, file, indent=2, ensure_ascii=False)
            file.write("\n")
        draft.replace(path)
    except OSError as exc:
        draft.unlink(missing_ok=True)
        raise SettingsError(f"contexts {path}: {(exc.strerror or str(exc)).lower()}") from exc


def _contexts_of(document: Any) -> Contexts:
    by_name = {name: _context(name, **entry) for name, entry in document["contexts"].items()}
    current = document.get("current")
    return Contexts(current=current if current in by_name else None, by_name=by_name)


def _context(name: str, *, server: str, **token: str) -> Context:
    if not all(isinstance(value, str) for value in (server, *token.values())):
        raise TypeError("a field of a context is no text")
    return Context(name=name, server=server.rstrip("/"), **token)

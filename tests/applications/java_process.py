"""One instance of a Java application: started, killed with SIGKILL, started again."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.commands import JAVA_FLAGS, marker
from service.sandbox.cluster.properties import render
from service.sandbox.cluster.releases import Release
from tests.applications.java_classes import VERSION

HEAP: Final = "-Xmx192m"
END_SECONDS: Final = 120.0


@dataclass(eq=False, kw_only=True)
class JavaProcess:
    """A process of its own folder; `cluster` is the one whose end would end it too."""

    cluster: Sandbox
    class_path: str
    folder: Path
    main_class: str
    settings: Mapping[str, str]
    arguments: Sequence[str] = ()
    kills: int = field(default=0, init=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def start(self) -> None:
        """Start it, with what an earlier process left in its folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / "application.properties"
        file.write_text(render(self.settings), encoding="ascii")
        with (self.folder / "output.log").open("ab") as output:
            self._process = subprocess.Popen(
                [*self._java(), self.main_class, str(file), *self.arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """Kill it with SIGKILL, in the midst of its transaction."""
        assert self._process is not None
        assert self.is_running, f"it ended by itself: {self.last_words()}"
        self._process.kill()
        self._process.wait(END_SECONDS)
        self.kills += 1

    def stop(self) -> None:
        """End it, in order if it does."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(END_SECONDS)

    def last_words(self) -> str:
        """Return the ends of what it wrote, for assertions that print them."""
        found = [self.folder / name for name in ("output.log", "server.log")]
        return "\n".join(path.read_text("utf-8")[-3000:] for path in found if path.exists())

    def _java(self) -> list[str]:
        state = self.cluster.state
        return [
            state.java,
            HEAP,
            marker(self.cluster.directory),
            *JAVA_FLAGS,
            Release(VERSION).log_flag,
            f"-Dkafka.logs.dir={self.folder}",
            "-cp",
            self.class_path,
        ]

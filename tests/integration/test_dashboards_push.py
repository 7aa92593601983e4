"""`tidemark dashboards` writes files, and puts dashboards into a Grafana by its HTTP API.

The server here answers as Grafana's documentation says; that Grafana shows what it gets is not proven by it.
"""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest

from dashboards.files import TITLE, read_files
from service.cli.main import run
from service.terminal.exit_codes import ExitCode

pytestmark = pytest.mark.integration

TOKEN: Final = "glsa_of-a-test"  # noqa: S105 - of the server below
COUNT: Final = len(list(read_files({})))
Document = Mapping[str, Any]
Push = Callable[..., tuple[int, str, str]]


class Grafana(http.server.BaseHTTPRequestHandler):
    """What Grafana answers about folders and dashboards."""

    folders: ClassVar[list[dict[str, Any]]]
    stored: ClassVar[dict[str, dict[str, Any]]]  # by uid: what was saved, and in which folder
    requests: ClassVar[list[str]]
    failure: ClassVar[tuple[int, Document] | None]  # of saving a dashboard
    token: ClassVar[str]

    def do_GET(self) -> None:
        if not self._is_allowed():
            return None
        path = self.path.partition("?")[0]
        if path == "/api/folders":
            return self._answer(200, self.folders)
        saved = self.stored.get(path.removeprefix("/api/dashboards/uid/"))
        if saved is None:
            return self._answer(404, {"message": "Dashboard not found"})
        meta = {"folderUid": saved["folder"], "isFolder": False}
        return self._answer(200, {"dashboard": saved["dashboard"], "meta": meta})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self._is_allowed():
            return None
        if self.path == "/api/folders":
            self.folders.append({"id": 7, "uid": "made-by-grafana", "title": body["title"]})
            return self._answer(200, self.folders[-1])
        return self._answer(*(self.failure or self._save(body)))

    def _save(self, body: Document) -> tuple[int, Document]:
        uid = body["dashboard"]["uid"]
        if uid in self.stored and not body["overwrite"]:
            message = "The dashboard has been changed by someone else"
            return 412, {"status": "version-mismatch", "message": message}
        version = self.stored.get(uid, {}).get("version", 0) + 1
        saved = {**body["dashboard"], "id": len(self.stored) + 1, "version": version}
        self.stored[uid] = {"dashboard": saved, "folder": body["folderUid"], "version": version}
        return 200, {"uid": uid, "status": "success", "version": version}

    def _is_allowed(self) -> bool:
        self.requests.append(f"{self.command} {self.path}")
        if self.headers["Authorization"] == f"Bearer {self.token}":
            return True
        self._answer(401, {"message": "Invalid API key"})
        return False

    def _answer(self, status: int, document: object) -> None:
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def grafana() -> Iterator[type[Grafana]]:
    """Give the state of a Grafana that listens at `url`."""
    state: Any = type("GrafanaOfOneTest", (Grafana,), {})
    state.folders, state.stored, state.requests = [], {}, []
    state.failure, state.token = None, TOKEN
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), state) as server:
        state.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield state
        server.shutdown()


@pytest.fixture
def typed(grafana: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Push:
    """Give a function that pushes with further options, and returns code, output and error."""
    token_file = tmp_path / "token"
    token_file.write_text(f"{TOKEN}\n", encoding="utf-8")

    def push(*options: str, url: str = grafana.url) -> tuple[int, str, str]:
        base = ("dashboards", "push", "--url", url, "--token-file", str(token_file))
        code = run([*base, *options])
        return (code, *capsys.readouterr())

    return push


def states(output: str) -> set[str]:
    return {row["state"] for row in json.loads(output)["dashboards"]}


def test_dashboards_are_put_into_a_folder_that_is_made(grafana: Any, typed: Push) -> None:
    code, out, err = typed("-o", "json")
    assert (code, err) == (ExitCode.OK, "")
    assert states(out) == {"created"}
    assert [folder["title"] for folder in grafana.folders] == [TITLE]
    assert len(grafana.stored) == COUNT
    assert {saved["folder"] for saved in grafana.stored.values()} == {"made-by-grafana"}
    assert grafana.stored["tidemark-fleet"]["dashboard"]["title"] == "Fleet overview"


def test_what_is_there_already_is_not_saved_again(grafana: Any, typed: Push) -> None:
    typed()
    grafana.requests.clear()
    code, out, _ = typed("-o", "json")
    assert (code, states(out)) == (ExitCode.OK, {"unchanged"})
    assert not [request for request in grafana.requests if request.startswith("POST")]
    assert {saved["version"] for saved in grafana.stored.values()} == {1}


def test_what_differs_or_was_moved_is_saved_over(grafana: Any, typed: Push) -> None:
    typed()
    grafana.stored["tidemark-fleet"]["dashboard"]["title"] = "changed by hand"
    grafana.stored["tidemark-usual"]["folder"] = "elsewhere"
    _, out, _ = typed("-o", "json")
    changed = {row["uid"] for row in json.loads(out)["dashboards"] if row["state"] == "updated"}
    assert changed == {"tidemark-fleet", "tidemark-usual"}
    assert grafana.stored["tidemark-fleet"]["dashboard"]["title"] == "Fleet overview"
    assert grafana.stored["tidemark-usual"]["folder"] == "made-by-grafana"


def test_a_folder_that_is_there_is_used(grafana: Any, typed: Push) -> None:
    grafana.folders.append({"id": 1, "uid": "theirs", "title": "Kafka"})
    code, out, _ = typed("--folder", "Kafka")
    assert code == ExitCode.OK
    assert f"put {COUNT} dashboards into folder Kafka of {grafana.url}" in out
    assert {saved["folder"] for saved in grafana.stored.values()} == {"theirs"}


def test_a_dry_run_says_what_would_be_done_and_changes_nothing(grafana: Any, typed: Push) -> None:
    code, out, _ = typed("--dry-run")
    assert code == ExitCode.OK
    assert (
        f"would put {COUNT} dashboards into folder {TITLE} of {grafana.url}, which is created"
        in out
    )
    assert not grafana.stored
    assert not grafana.folders


def test_data_sources_are_chosen_by_their_uids(grafana: Any, typed: Push) -> None:
    pages = "https://wiki.example/rules"
    typed("--prometheus-uid", "mimir", "--postgres-uid", "pg", "--rule-pages", pages)
    listed = grafana.stored["tidemark-fleet"]["dashboard"]["templating"]["list"]
    values = {variable["name"]: variable.get("current", {}).get("value") for variable in listed}
    assert values["prometheus_datasource"] == "mimir"
    assert values["postgres_datasource"] == "pg"
    assert values["rule_pages"] == pages


def test_a_wrong_token_ends_with_5_and_is_not_shown(grafana: Any, typed: Push) -> None:
    grafana.token = TOKEN.upper()
    code, out, err = typed()
    assert (code, out) == (ExitCode.AUTHENTICATION, "")
    assert "rejects the token" in err
    assert TOKEN not in err


@pytest.mark.parametrize(
    ("answer", "code", "expected"),
    [
        ((403, "You'll need additional permissions"), ExitCode.AUTHENTICATION, "the role Editor"),
        ((412, "A dashboard with the same name exists"), ExitCode.CONFLICT, "same name exists"),
        (
            (412, "The dashboard has been changed by someone else"),
            ExitCode.CONFLICT,
            "someone else",
        ),
        ((400, "Cannot save provisioned dashboard"), ExitCode.USAGE, "Cannot save provisioned"),
        ((500, "Internal error"), ExitCode.INCOMPLETE, "answers 500"),
    ],
)
def test_a_rejected_dashboard_ends_with_the_code_of_its_reason(
    grafana: Any, typed: Push, answer: tuple[int, str], code: ExitCode, expected: str
) -> None:
    status, message = answer
    grafana.failure = (status, {"message": message})
    ended, _, err = typed()
    assert ended == code
    assert expected in err


def test_what_does_not_answer_or_is_no_grafana_ends_with_4(grafana: Any, typed: Push) -> None:
    code, _, err = typed(url="http://127.0.0.1:1")
    assert code == ExitCode.UNREACHABLE
    assert "cannot be reached" in err
    grafana.folders = {"not": "a list"}
    code, _, err = typed()
    assert code == ExitCode.UNREACHABLE
    assert "is not a Grafana" in err


def test_files_are_written_compared_and_written_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "folder"
    export = ["dashboards", "export", str(folder)]
    assert run([*export, "--check"]) == ExitCode.INCOMPLETE
    assert not folder.exists()
    assert run(export) == ExitCode.OK
    assert len(list(folder.glob("*.json"))) == COUNT
    capsys.readouterr()
    assert run([*export, "--check", "-o", "json"]) == ExitCode.OK
    assert states(capsys.readouterr().out) == {"unchanged"}
    (folder / "tidemark-fleet.json").write_text("{}", encoding="utf-8")
    (folder / "mine.json").write_text("{}", encoding="utf-8")
    assert run([*export, "--check"]) == ExitCode.INCOMPLETE
    assert run(export) == ExitCode.OK
    assert run([*export, "--check"]) == ExitCode.OK
    assert (folder / "mine.json").exists(), "other files are left alone"


def test_graphs_of_recorded_series_are_written_and_pushed_only_on_demand(
    grafana: Any, typed: Push, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export = ["dashboards", "export", str(tmp_path)]
    assert run([*export, "--recorded"]) == ExitCode.OK
    texts = {file.name: file.text for file in read_files({}, is_recorded=True)}
    assert {path.name: path.read_text("utf-8") for path in tmp_path.glob("*.json")} == texts
    assert run([*export, "--check"]) == ExitCode.INCOMPLETE
    capsys.readouterr()
    assert typed()[0] == ExitCode.OK
    code, out, _ = typed("--recorded", "-o", "json")
    assert (code, states(out)) == (ExitCode.OK, {"updated", "unchanged"})
    saved = grafana.stored["tidemark-groups"]["dashboard"]
    assert "cluster_group_topic:" in json.dumps(saved)


def test_a_folder_that_cannot_be_written_ends_with_8(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert run(["dashboards", "export", str(tmp_path / "file" / "below")]) == ExitCode.OUTPUT
    assert "cannot be written" in capsys.readouterr().err

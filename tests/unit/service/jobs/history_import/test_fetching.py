"""Range queries piece by piece: what is too much is halved, what does not answer is given up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from rules.baseline.series import Metric
from rules.errors import RequestError, UnreachableError
from service.jobs.history_import import fetching
from service.jobs.history_import.exporters import Query, custom_query
from service.jobs.history_import.fetching import Fetched, Span, fetch, rates_of
from service.jobs.history_import.prometheus import Answer, Answered, NotAnsweredError, TooMuchError

DAY = 86_400
LABELS = {"topic": "a", "partition": "0", "group": "g"}
LAG = custom_query("read_committed_lag=lag")
OFFSET = Query(
    text="offset",
    metric=Metric.CONSUME_RATE,
    is_offset=True,
    labels={"topic": "topic", "partition": "partition", "group": "group"},
    cluster="cluster",
)


@dataclass
class Server:
    """A server that answers with the time, or not."""

    refuse: Callable[[float, float], Exception | None] = lambda *_: None
    labels: list[dict[str, str]] = field(default_factory=lambda: [LABELS])
    cluster: Callable[[float], str] | None = None  # of all series, by the time
    ranges: list[tuple[float, float]] = field(default_factory=list)

    def query_range(self, query: str, start_s: float, end_s: float, step_s: float) -> Answer:
        assert query
        self.ranges.append((start_s, end_s))
        error = self.refuse(start_s, end_s)
        if error is not None:
            raise error
        times = np.arange(int(start_s), int(end_s) + 1, int(step_s), dtype=np.int64)
        values = times.astype(np.float64) * 2
        named = {} if self.cluster is None else {"cluster": self.cluster(end_s)}
        return Answer([Answered(labels | named, times * 1000, values) for labels in self.labels])

    def query(self, query: str, at_s: float) -> Answer:
        assert query
        return Answer([Answered({}, np.array([int(at_s)]), np.array([2.0]))])


def run(
    server: Server, *queries: Query, days: int = 3
) -> tuple[Fetched, list[dict[str, Any]], list[float]]:
    pauses = list[float]()
    span = Span(start_s=0, end_s=days * DAY - 60, step_s=60)
    with TemporaryDirectory() as folder:
        fetched = fetch(
            server,
            queries or [LAG],
            span,
            Path(folder),
            cluster="c",
            report=lambda _: None,
            pause=pauses.append,
        )
        assert sorted(Path(folder).iterdir()) == fetched.files
        rows = [row for file in fetched.files for row in pq.read_table(file).to_pylist()]
    return fetched, rows, pauses


def test_pieces_of_a_day_hold_each_point_once() -> None:
    server = Server()
    fetched, rows, _ = run(server)
    assert [end - start for start, end in server.ranges] == [DAY - 60] * 3
    times = [int(row["time"].timestamp()) for row in rows]
    assert times == list(range(0, 3 * DAY, 60))
    assert {row["series"] for row in rows} == {
        'read_committed_lag{topic="a",partition="0",group="g"}'
    }
    assert (fetched.samples, fetched.problems) == (len(rows), [])


def test_a_rate_is_made_across_pieces() -> None:
    fetched, rows, _ = run(Server(), OFFSET)
    assert [row["value"] for row in rows] == [2.0] * (3 * DAY // 60 - 1)
    assert (fetched.samples, fetched.backward_steps) == (len(rows), 0)


def test_what_is_too_much_is_halved_at_once_and_stays_so() -> None:
    limit = DAY / 5
    server = Server(lambda start, end: TooMuchError("x") if end - start > limit else None)
    fetched, rows, pauses = run(server, days=1)
    assert len(rows) == DAY // 60
    refused = [end - start for start, end in server.ranges if end - start > limit]
    assert len(refused) == 3
    assert (fetched.problems, pauses) == ([], [])


def test_one_piece_that_never_answers_costs_only_itself() -> None:
    server = Server(lambda start, _: NotAnsweredError("503") if start == DAY else None)
    fetched, rows, pauses = run(server)
    assert len(rows) == 2 * DAY // 60
    assert fetched.problems == ["lag: no answer for 86400 s from 86400 on: 503"]
    assert pauses == [1, 2]


@pytest.mark.parametrize("error", [NotAnsweredError("503"), TooMuchError("slow")])
def test_a_query_is_given_up_after_five_pieces_without_an_answer(error: Exception) -> None:
    server = Server(lambda start, _: error if start >= DAY else None)
    fetched, rows, _ = run(server, days=30)
    assert len(rows) == DAY // 60
    assert fetched.problems[-1] == f"lag is given up: {error}"
    assert len(fetched.problems) == fetching.MOST_UNANSWERED + 1


def test_a_server_that_never_answers_is_unreachable() -> None:
    with pytest.raises(UnreachableError, match="503"):
        run(Server(lambda *_: NotAnsweredError("503")))


def test_clusters_are_not_mixed() -> None:
    server = Server(labels=[LABELS | {"cluster": "b"}, LABELS | {"cluster": "a"}])
    fetched, rows, _ = run(server, OFFSET)
    assert rows == []
    assert "2 clusters (a, b): choose one with --match 'cluster=\"a\"'" in fetched.problems[0]


def test_clusters_that_come_one_after_the_other_are_not_mixed() -> None:
    server = Server(cluster=lambda end_s: "a" if end_s < 2 * DAY else "b")
    fetched, rows, _ = run(server, OFFSET, LAG)
    assert {row["series"].partition("{")[0] for row in rows} == {"read_committed_lag"}
    assert len(rows) == fetched.samples == 3 * DAY // 60
    assert "offset has series of 2 clusters (a, b): choose one" in fetched.problems[0]


def test_a_query_of_another_cluster_than_the_one_before_is_rejected() -> None:
    server = Server()
    server.cluster = lambda _: "a" if len(server.ranges) <= 3 else "b"
    fetched, rows, _ = run(server, OFFSET, OFFSET)
    assert len(rows) == 3 * DAY // 60 - 1
    assert "2 clusters (a, b)" in fetched.problems[0]


def test_nothing_is_taken_of_a_query_that_is_rejected_late() -> None:
    server = Server(lambda start, _: RequestError("lag: many-to-many") if start >= DAY else None)
    fetched, rows, _ = run(server)
    assert (rows, fetched.samples) == ([], 0)
    assert fetched.problems == ["lag: many-to-many"]


def test_a_rate_over_a_step_back_or_a_gap_is_not_known() -> None:
    at = np.array([0, 60, 120, 180, 480, 540]) * 1000
    offsets = np.array([0, 60, 30, 90, 100, -1.0])
    times, rates, back = rates_of(at, offsets, 60_000)
    assert (times.tolist(), rates.tolist(), back) == ([60_000, 180_000], [1.0, 1.0], 1)

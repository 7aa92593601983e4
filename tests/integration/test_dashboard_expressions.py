"""Prometheus parses every expression of the dashboards, and each one has an answer where its metrics have values.

What graphs read of recorded series is what they read of every partition.

The program is Debian's promtool. Values are made up: a series for each of the labels that expressions name.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Final

import pytest

from dashboards.prometheus.files import STACK_FOLDERS
from dashboards.prometheus.recording import RECORDING, WINDOW
from rules import names
from rules.names import METRICS, Metric, MetricType
from tests.unit.dashboards.given_dashboards import (
    every_expression,
    recorded_expressions,
    with_ranges,
    with_values,
)

pytestmark = pytest.mark.integration

INSTALL: Final = "apt-get install prometheus"
EXPRESSIONS: Final = tuple(every_expression())
# Labels whose values expressions name; every other label has one value.
VALUES: Final = {
    "rule": ("committed_records_lost", "unclean_leader_election", "records_possibly_lost"),
    "severity": ("critical", "warning"),
    "state": ("firing", "pending", "unwatched", "Empty"),
    "class": ("hanging", "overdue", "prepare_commit", "loss"),
    "phase": ("suspected", "confirmed"),
    "verdict": ("unknown",),
    "outcome": ("failed", "lost", "read_beyond"),
}
CHOSEN: Final = {name: f"a-{name}" for name in ("cluster", "group", "topic", "partition")}
HOURS: Final = 7  # more than a range of six


def promtool(*arguments: str) -> str:
    program = shutil.which("promtool")
    assert program, f"promtool is missing: {INSTALL}"
    done = subprocess.run(
        [program, *arguments], capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_prometheus_parses_every_expression(tmp_path: Path) -> None:
    rules = [
        {"record": f"dashboards:expression_{number}", "expr": with_ranges(expression)}
        for number, (_, expression) in enumerate(EXPRESSIONS)
    ]
    file = tmp_path / "rules.yml"  # JSON is YAML
    file.write_text(json.dumps({"groups": [{"name": "dashboards", "rules": rules}]}), "utf-8")
    assert f"{len(EXPRESSIONS)} rules found" in promtool("check", "rules", str(file))


def test_every_expression_has_an_answer_where_its_metrics_have_values(tmp_path: Path) -> None:
    tests = [
        {
            "expr": f"count({with_values(expression, CHOSEN)}) > bool 0",
            "eval_time": f"{HOURS}h",
            "exp_samples": [{"labels": "{}", "value": 1}],
        }
        for _, expression in EXPRESSIONS
    ]
    file = tmp_path / "test.yml"
    group = {"interval": "30s", "input_series": list(input_series()), "promql_expr_test": tests}
    file.write_text(json.dumps({"evaluation_interval": "1h", "tests": [group]}), "utf-8")
    promtool("test", "rules", str(file))


def input_series() -> Iterator[dict[str, str]]:
    for metric in METRICS:
        labels = ("job", "instance", *metric.labels)
        for values in product(*(VALUES.get(label, (f"a-{label}",)) for label in labels)):
            yield from series_of(metric, list(zip(labels, values, strict=True)))


def series_of(metric: Metric, labels: Sequence[tuple[str, str]]) -> Iterator[dict[str, str]]:
    steps = HOURS * 120
    course = "0+3" if metric.type is not MetricType.GAUGE else course_of(metric)
    if metric.type is MetricType.HISTOGRAM:
        for bound in (*map(str, metric.buckets), "+Inf"):
            yield series(metric.series[0], [*labels, ("le", bound)], f"0+3x{steps}")
        return
    yield series(metric.name, labels, f"{course}x{steps}")


def course_of(metric: Metric) -> str:
    """Return a course: what is not enough in sync, and what else expressions compare."""
    fixed = {
        names.IN_SYNC_REPLICAS: "1+0",
        names.REPLICAS: "3+0",
        names.MIN_INSYNC_REPLICAS: "2+0",
        names.NOTHING_TO_READ: "1+0",  # which is all that it can be, or 0
    }
    return fixed.get(metric, "1+1")


def series(name: str, labels: Sequence[tuple[str, str]], values: str) -> dict[str, str]:
    text = ", ".join(f'{label}="{value}"' for label, value in labels)
    return {"series": f"{name}{{{text}}}", "values": values}


SAMPLES: Final = 81  # every 15 s, 20 minutes
MISSING: Final = 0.1  # of the samples: what could not be read is absent
TARGETS: Final = (("a", "east"), ("b", "east"), ("c", "west"))  # two services observe one cluster


def test_graphs_of_recorded_series_show_what_those_of_every_partition_show(tmp_path: Path) -> None:
    """Down to what is absent, and up to rounding: sums are added in another order."""
    tests = [
        {"expr": expression, "eval_time": time, "exp_samples": samples}
        for raw, recorded in recorded_expressions().values()
        for time in ("10m", "15m30s", "20m")
        for expression, samples in comparisons(*map(as_sent, (raw, recorded)))
    ]
    assert len(tests) > 150
    document = {
        "rule_files": [str(STACK_FOLDERS[RECORDING.name] / RECORDING.name)],
        "evaluation_interval": "30s",
        "tests": [
            {
                "interval": "15s",
                "input_series": list(changing_series(random.Random())),
                "promql_expr_test": tests,
            }
        ],
    }
    file = tmp_path / "test.yml"
    file.write_text(json.dumps(document), "utf-8")
    promtool("test", "rules", str(file))


def as_sent(expression: str) -> str:
    return with_values(expression, {}, {"$__rate_interval": WINDOW})


def comparisons(raw: str, recorded: str) -> Iterator[tuple[str, list[dict[str, object]]]]:
    """Yield expressions with the samples that they have if both show the same, and something."""
    yield f"abs(({raw}) - ({recorded})) > 1e-9 * abs({raw})", []
    yield f"({raw}) unless ({recorded}) or ({recorded}) unless ({raw})", []
    yield f"count({raw}) > bool 0", [{"labels": "{}", "value": 1}]


def changing_series(chance: random.Random) -> Iterator[dict[str, str]]:
    """Yield values that rise and fall by chance, some absent, of topics of several partitions and groups."""
    topics = {"bills": 1, "orders": 3, "gone": 2}
    for metric in METRICS:
        if "partition" not in metric.labels or "replica" in metric.labels:
            continue
        groups = ("a-group", "b-group") if "group" in metric.labels else (None,)
        for (job, cluster), group, topic in product(TARGETS, groups, topics):
            for partition in range(topics[topic]):
                labels = {"job": job, "cluster": cluster, "topic": topic}
                labels |= {"partition": str(partition)} | ({"group": group} if group else {})
                length = SAMPLES // 2 if topic == "gone" else SAMPLES
                values = (
                    "_" if chance.random() < MISSING else value_of(metric, chance)
                    for _ in range(length)
                )
                yield series(metric.name, list(labels.items()), " ".join(values))


def value_of(metric: Metric, chance: random.Random) -> str:
    most = {
        names.HAS_LEADER: 1,
        names.IN_SYNC_REPLICAS: 3,
        names.REPLICAS: 3,
        names.MIN_INSYNC_REPLICAS: 3,
    }
    return str(chance.randint(0, most.get(metric, 10**6)))

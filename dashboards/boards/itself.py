"""Tidemark itself: is the cluster observed, completely and in time, and is what is seen stored?"""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models import units

from dashboards.annotations import firing_alerts
from dashboards.boards.alerts import YES_NO
from dashboards.links import Uid, to_rule_page
from dashboards.panels import (
    ATTENTION_ABOVE_ZERO,
    BAD_AT_ZERO,
    GOOD_AT_ZERO,
    Board,
    Color,
    Column,
    Graph,
    Latest,
    Section,
    Series,
    SqlRows,
    Stat,
    Step,
    Table,
)
from dashboards.postgres import chosen, select, within
from dashboards.promql import (
    RATE,
    Scope,
    among,
    differs,
    equals,
    largest,
    ratio,
    smallest,
    top,
    total,
    where_above,
)
from rules import names

SCOPE: Final = Scope(("cluster", "job"))
STALE: Final = (Step(0, Color.GOOD), Step(60, Color.ATTENTION), Step(300, Color.BAD))

STATS: Final = (
    Stat(
        number=1,
        title="Age of the data",
        description="Since the latest round that gave a snapshot began. A few intervals are normal; more means that "
        "the cluster is not observed.",
        unit=units.Seconds,
        queries=(Latest(largest(SCOPE.age(names.LAST_SUCCESS))),),
        steps=STALE,
    ),
    Stat(
        number=2,
        title="Round",
        description="How long the latest round took, as a share of its interval. Above 1 rounds are late.",
        unit=units.PercentUnit,
        queries=(
            Latest(
                largest(
                    ratio(
                        largest(SCOPE.value(names.ROUND_DURATION), "cluster"),
                        largest(SCOPE.value(names.ROUND_INTERVAL), "cluster"),
                    )
                )
            ),
        ),
        steps=(Step(0, Color.GOOD), Step(0.7, Color.ATTENTION), Step(1, Color.BAD)),
    ),
    Stat(
        number=3,
        title="Not seen",
        description="Values that the latest round should have read and could not.",
        unit=units.Short,
        queries=(Latest(total(SCOPE.value(names.GAPS))),),
        steps=ATTENTION_ABOVE_ZERO,
    ),
    Stat(
        number=4,
        title="Stored",
        description="Whether the latest round is stored, so that it survives a restart.",
        unit=units.BoolYesNo,
        queries=(Latest(smallest(SCOPE.value(names.STORE_UP))),),
        steps=BAD_AT_ZERO,
        words=YES_NO,
    ),
    Stat(
        number=5,
        title="History written",
        description="Whether the latest round is written to history, on the local disk.",
        unit=units.BoolYesNo,
        queries=(Latest(smallest(SCOPE.value(names.HISTORY_UP))),),
        steps=BAD_AT_ZERO,
        words=YES_NO,
    ),
    Stat(
        number=6,
        title="Series left out",
        description="Series of partitions and groups that are on no dashboard, because of a limit or a pattern.",
        unit=units.Short,
        queries=(Latest(total(SCOPE.value(names.SERIES_DROPPED))),),
        steps=ATTENTION_ABOVE_ZERO,
    ),
)

OBSERVING: Final = (
    Graph(
        number=10,
        title="Round by phase",
        description="How long each phase of the latest round took, and the interval. The phase that grows names the "
        "requests that are slow.",
        unit=units.Seconds,
        queries=(
            Series(largest(SCOPE.value(names.PHASE_DURATION), "phase"), "{{phase}}"),
            Series(smallest(SCOPE.value(names.ROUND_INTERVAL)), "interval"),
        ),
    ),
    Graph(
        number=11,
        title="Rounds by outcome",
        description="Rounds per second: complete, with gaps, or failed because the cluster did not answer.",
        unit=units.OpsPerSecond,
        queries=(Series(total(SCOPE.rate(names.ROUNDS), "outcome"), "{{outcome}}"),),
        is_stacked=True,
    ),
    Graph(
        number=12,
        title="Not seen, by cause",
        description="Values that a round should have read and could not. not_authorized: a permission is missing. "
        "unreachable, timeout: a broker does not answer.",
        unit=units.Short,
        queries=(Series(where_above(total(SCOPE.value(names.GAPS), "cause"), 0), "{{cause}}"),),
        is_stacked=True,
    ),
    Graph(
        number=13,
        title="Requests to Kafka",
        description="Requests per second, the ten APIs with the most.",
        unit=units.RequestsPerSecond,
        queries=(Series(top(10, total(SCOPE.rate(names.REQUESTS), "api")), "{{api}}"),),
    ),
    Graph(
        number=14,
        title="Endpoints that answer",
        description="Metrics endpoints of brokers and clients whose latest scrape succeeded. A step down is one that "
        "does not answer.",
        unit=units.Short,
        queries=(Series(total(SCOPE.value(names.SCRAPE_UP), "cluster"), "{{cluster}}"),),
    ),
    Graph(
        number=15,
        title="Slowest endpoints",
        description="Duration of the latest scrape, the ten slowest endpoints.",
        unit=units.Seconds,
        queries=(
            Series(
                top(10, largest(SCOPE.value(names.SCRAPE_DURATION), "endpoint")), "{{endpoint}}"
            ),
        ),
    ),
    Graph(
        number=16,
        title="Broker log lines",
        description="Lines per second by source, and lines about sequences or losses that could not be parsed.",
        unit=units.CountsPerSecond,
        queries=(
            Series(top(10, total(SCOPE.rate(names.BROKER_LOG_LINES), "source")), "{{source}}"),
            Series(
                top(10, total(SCOPE.rate(names.BROKER_LOG_UNPARSED), "source")),
                "{{source}}: not parsed",
            ),
        ),
    ),
    Graph(
        number=17,
        title="Age of the latest log line",
        description="By the broker's clock: the ten sources with the oldest. Quiet brokers write little; a source "
        "that stopped climbs for ever.",
        unit=units.Seconds,
        queries=(
            Series(top(10, largest(SCOPE.age(names.BROKER_LOG_LAST_LINE), "source")), "{{source}}"),
        ),
    ),
)

STORING: Final = (
    Graph(
        number=20,
        title="Rounds that wait for the database",
        description="They are stored when it is back.",
        unit=units.Short,
        queries=(Series(total(SCOPE.value(names.STORE_WAITING), "cluster"), "{{cluster}}"),),
        steps=(Step(0, Color.GOOD), Step(1, Color.ATTENTION)),
    ),
    Graph(
        number=21,
        title="Transitions lost",
        description="Transitions of findings and alerts that were never stored, within each step.",
        unit=units.Short,
        queries=(
            Series(total(SCOPE.increase(names.STORE_LOST, over=RATE), "cluster"), "{{cluster}}"),
        ),
        steps=(Step(0, Color.GOOD), Step(1, Color.BAD)),
    ),
    Graph(
        number=24,
        title="Rows rejected",
        description="Rows that the database rejects for good, within each step: they are left out, and all others are stored.",
        unit=units.Short,
        queries=(
            Series(total(SCOPE.increase(names.STORE_REJECTED, over=RATE), "kind"), "{{kind}}"),
        ),
        steps=(Step(0, Color.GOOD), Step(1, Color.BAD)),
    ),
    Graph(
        number=22,
        title="Hours of history that wait",
        description="Bytes on the local disk that wait for the folder of history.",
        unit=units.BytesIEC,
        queries=(Series(total(SCOPE.value(names.HISTORY_WAITING), "cluster"), "{{cluster}}"),),
    ),
    Graph(
        number=23,
        title="History: time per round",
        description="How long writing the latest round of history took, beside the rounds.",
        unit=units.Seconds,
        queries=(
            Series(largest(SCOPE.value(names.HISTORY_WRITE_DURATION), "cluster"), "{{cluster}}"),
        ),
    ),
)

# Every exporter has metrics of its process: those of Tidemark are of the jobs and instances that have its version.
TIDEMARKS: Final = largest(SCOPE.value(names.BUILD_INFO), "job", "instance")

PROCESS: Final = (
    Graph(
        number=30,
        title="Memory",
        description="Resident memory of the process, an embedded PostgreSQL left out.",
        unit=units.BytesIEC,
        queries=(
            Series(
                among(largest(SCOPE.value(names.PROCESS_MEMORY), "job", "instance"), TIDEMARKS),
                "{{instance}}",
            ),
        ),
    ),
    Graph(
        number=31,
        title="Processor",
        description="Processor time per second: 1 is one core.",
        unit=units.Short,
        queries=(
            Series(
                among(total(SCOPE.rate(names.PROCESS_CPU), "job", "instance"), TIDEMARKS),
                "{{instance}}",
            ),
        ),
    ),
    Graph(
        number=32,
        title="Open files",
        description="File descriptors that are open. A line that only climbs is a leak.",
        unit=units.Short,
        queries=(
            Series(
                among(largest(SCOPE.value(names.PROCESS_FILES), "job", "instance"), TIDEMARKS),
                "{{instance}}",
            ),
        ),
    ),
    Graph(
        number=33,
        title="Tasks restarted, lines lost",
        description="Tasks that died and were started again, and log lines that could not be written, within each step.",
        unit=units.Short,
        queries=(
            Series(total(SCOPE.increase(names.TASK_RESTARTS, over=RATE), "task"), "{{task}}"),
            Series(total(SCOPE.increase(names.LOG_LINES_LOST, over=RATE)), "log lines lost"),
        ),
        steps=(Step(0, Color.GOOD), Step(1, Color.BAD)),
    ),
)

TABLES: Final = (
    Table(
        number=40,
        title="What no rule can judge",
        description="Subjects whose verdict is UNKNOWN, by rule: what is missing is above, by cause.",
        queries=(
            Latest(
                where_above(
                    total(
                        SCOPE.value(names.VERDICTS, equals("verdict", "unknown")), "cluster", "rule"
                    ),
                    0,
                )
            ),
        ),
        columns=(
            Column(source="cluster", title="Cluster"),
            Column(source="rule", title="Rule", links=(to_rule_page(),)),
            Column(source="Value", title="Not judged", steps=ATTENTION_ABOVE_ZERO),
        ),
        sorted_by="Not judged",
    ),
    Table(
        number=41,
        title="Jobs",
        description="What is done at set times: how long ago it last went well, and how often it failed or was missed.",
        queries=(
            Latest(largest(SCOPE.age(names.JOB_LAST_SUCCESS), "job_name")),
            Latest(largest(SCOPE.value(names.JOB_DURATION), "job_name")),
            Latest(
                total(SCOPE.increase(names.JOB_RUNS, differs("outcome", "succeeded")), "job_name")
            ),
            Latest(largest(SCOPE.value(names.JOB_RUNNING), "job_name")),
        ),
        columns=(
            Column(source="job_name", title="Job"),
            Column(source="Value #A", title="Last success, ago", unit=units.Seconds),
            Column(source="Value #B", title="Latest run took", unit=units.Seconds),
            Column(source="Value #C", title="Not succeeded", steps=GOOD_AT_ZERO),
            Column(source="Value #D", title="Runs now", unit=units.BoolYesNo),
        ),
    ),
    Table(
        number=42,
        title="Runs of jobs",
        description="In the time that is shown, the latest first, and why they failed.",
        queries=(
            SqlRows(
                select(
                    "cluster, job_name, due_at, started_at, ended_at, outcome, detail",
                    "job_runs",
                    f"(cluster IS NULL OR {chosen('cluster', 'cluster')})",
                    within("started_at"),
                    order="started_at DESC",
                )
            ),
        ),
        columns=(
            Column(source="cluster", title="Cluster"),
            Column(source="job_name", title="Job"),
            Column(source="due_at", title="Due", unit=units.DatetimeISO),
            Column(source="started_at", title="Started", unit=units.DatetimeISO),
            Column(source="ended_at", title="Ended", unit=units.DatetimeISO),
            Column(
                source="outcome",
                title="Outcome",
                words={
                    "succeeded": ("succeeded", Color.GOOD),
                    "failed": ("failed", Color.BAD),
                    "timed_out": ("timed out", Color.BAD),
                    "interrupted": ("interrupted", Color.ATTENTION),
                    "missed": ("missed", Color.ATTENTION),
                },
            ),
            Column(source="detail", title="Detail"),
        ),
    ),
    Table(
        number=43,
        title="Versions",
        description="Which version runs where.",
        queries=(Latest(largest(SCOPE.value(names.BUILD_INFO), "job", "instance", "version")),),
        columns=(
            Column(source="job", title="Job"),
            Column(source="instance", title="Instance"),
            Column(source="version", title="Version"),
            Column(source="Value", title="Runs", unit=units.BoolYesNo),
        ),
        height=5,
    ),
)

BOARD: Final = Board(
    uid=Uid.TIDEMARK,
    title="Tidemark itself",
    question="Is the cluster observed completely and in time, and is what is seen stored?",
    variables=("cluster", "job"),
    sections=(
        Section(title="Now", panels=STATS),
        Section(title="Observing", panels=OBSERVING),
        Section(title="Storing", panels=STORING),
        Section(title="The process", panels=PROCESS),
        Section(title="Rules, jobs, versions", panels=TABLES),
    ),
    annotations=(firing_alerts(),),
)

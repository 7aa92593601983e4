"""Views for dashboards, in a schema of their own: a role that may read it sees nothing else.

A view reads with the rights of its owner, so that its reader needs none on the tables.

Frozen history: it imports nothing of ours and is never edited.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

SCHEMA = "tidemark_views"


def _labels(of: str) -> str:
    """Return the labels of subjects as columns; a partition that is no number is absent."""
    partition = f"{of}.labels ->> 'partition'"
    return f"""
    {of}.labels ->> 'topic' AS topic,
    CASE WHEN {partition} ~ '^[0-9]{{1,9}}$' THEN ({partition})::int END AS partition,
    {of}.labels ->> 'group' AS consumer_group,
    {of}.labels ->> 'transactional_id' AS transactional_id,
    {of}.labels ->> 'client' AS client"""


def _number(key: str) -> str:
    """Return a number of a finding's evidence; what is no number is absent."""
    value = f"f.evidence -> '{key}'"
    return (
        f"CASE WHEN jsonb_typeof({value}) = 'number' THEN ({value})::numeric::bigint END AS {key}"
    )


LOSS_RULES = (
    "committed_records_lost",
    "records_possibly_lost",
    "committed_beyond_log_end",
    "unclean_leader_election",
    "unreplicated_records_lost",
)
FINDING = f"""
SELECT c.name AS cluster, f.rule_id AS rule, f.verdict, f.reason, f.severity, f.kind, f.since,
    f.last_breach_at, f.last_judged_at, f.ended_at, f.end_reason,{_labels("f")}
"""
NUMBERS = (
    "certain_from",
    "certain_to",
    "certain_offsets",
    "possible_from",
    "possible_to",
    "visible_to_read_committed",
    "exact_from",
    "exact_to",
    "exact_offsets",
    "epoch_end",
    "leader_before",
    "leader_epoch_before",
    "leader",
    "leader_epoch",
    "group_count",
)

# Name -> its query; the order is that of their making.
VIEWS = {
    "findings": f"""
{FINDING}, f.labels, f.evidence
FROM finding AS f JOIN cluster AS c ON c.id = f.cluster
""",
    "finding_transitions": f"""
SELECT t.at, t.from_verdict, t.to_verdict, t.reason, c.name AS cluster, f.rule_id AS rule,
    f.severity,{_labels("f")}
FROM transition AS t JOIN finding AS f ON f.id = t.finding JOIN cluster AS c ON c.id = f.cluster
""",  # noqa: S608 - names of this file
    "losses": f"""
{FINDING}, {", ".join(map(_number, NUMBERS))},
    f.evidence ->> 'unknown_since' AS unknown_since, f.evidence ->> 'election' AS election,
    f.evidence ->> 'incident' AS incident
FROM finding AS f JOIN cluster AS c ON c.id = f.cluster
WHERE f.rule_id IN ({", ".join(f"'{rule}'" for rule in LOSS_RULES)})
""",
    "alerts": f"""
SELECT c.name AS cluster, a.rule_id AS rule, a.severity, a.state, a.reason, a.fingerprint,
    a.active_at, a.fired_at, a.resolved_at, a.end_reason, a.updated_at, a.labels,
    k.by_whom AS acknowledged_by, k.at AS acknowledged_at,{_labels("a")}
FROM alert AS a JOIN cluster AS c ON c.id = a.cluster
LEFT JOIN acknowledgement AS k
    ON k.cluster = a.cluster AND k.fingerprint = a.fingerprint AND k.fired_at = a.fired_at
""",  # noqa: S608 - names of this file
    "alert_transitions": f"""
SELECT s.at, s.step AS transition, s.reason, c.name AS cluster, a.rule_id AS rule, a.severity,
    a.fingerprint,{_labels("a")}
FROM alert_step AS s JOIN alert AS a ON a.id = s.alert JOIN cluster AS c ON c.id = a.cluster
""",  # noqa: S608 - names of this file
    "notifications": """
SELECT o.webhook_id, c.name AS cluster, o.receiver, o.reason, o.is_firing, o.alerts, o.created_at,
    o.state, o.next_attempt_at, o.attempts, o.done_at, o.dead_reason,
    o.fallback_of IS NOT NULL AS is_fallback, o.replay_of IS NOT NULL AS is_replay,
    l.at AS last_attempt_at, l.status AS last_status, l.failure AS last_failure
FROM outbox AS o LEFT JOIN cluster AS c ON c.id = o.cluster
LEFT JOIN LATERAL (
    SELECT d.at, d.status, d.failure FROM delivery_attempt AS d
    WHERE d.outbox = o.id ORDER BY d.at DESC, d.id DESC LIMIT 1
) AS l ON true
""",
    "silences": """
SELECT id, matchers, starts_at, ends_at, created_by, comment FROM silence
""",
    "job_runs": """
SELECT job_name, due_at, started_at, ended_at, outcome, detail FROM job_run
""",
    "baseline_runs": """
SELECT r.cluster, r.day, r.time_zone, r.series, r.loaded_at, b.run IS NOT NULL AS is_current
FROM baseline_runs AS r LEFT JOIN baseline_current AS b ON b.run = r.id
""",
    "baselines": """
SELECT cluster, day, time_zone, metric, topic, partition, consumer_group, outcome, reason, profile,
    slots, threshold, threshold_by, delta, slope, changed_at, changed_before, changed_after, days,
    mid, upper, lower
FROM current_baselines
""",
}


def upgrade() -> None:
    """Make the schema, unless an administrator has, and the views."""
    # CREATE SCHEMA IF NOT EXISTS needs the right to create one even where there is nothing to do.
    exists = sa.text("SELECT count(*) FROM pg_namespace WHERE nspname = :name")
    if not op.get_bind().scalar(exists, {"name": SCHEMA}):
        op.execute(f"CREATE SCHEMA {SCHEMA}")
    for name, query in VIEWS.items():
        op.execute(f"CREATE VIEW {SCHEMA}.{name} AS {query}")


def downgrade() -> None:
    """Drop the views; the schema stays, since what was granted on it may be an administrator's."""
    for name in reversed(VIEWS):
        op.execute(f"DROP VIEW {SCHEMA}.{name}")

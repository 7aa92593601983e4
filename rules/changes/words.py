"""Change events in words: what changed, in one line, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rules.facts.change_events import ChangedSubject, ChangeEvent, SubjectKind
from rules.facts.change_events import ChangeEventKind as Kind

NAMED: Final = 3  # subjects of one event in its summary

_WHAT: Final[Mapping[Kind, str]] = {
    Kind.TOPIC_CREATED: "created",
    Kind.TOPIC_APPEARED: "listed for the first time",
    Kind.TOPIC_DELETED: "deleted",
    Kind.TOPIC_RECREATED: "deleted and created again",
    Kind.TOPIC_HIDDEN: "not visible any more",
    Kind.PARTITIONS_ADDED: "partitions added",
    Kind.REASSIGNMENT_BEGAN: "reassignment of replicas began",
    Kind.REASSIGNMENT_CANCELLED: "reassignment of replicas cancelled",
    Kind.REPLICAS_REASSIGNED: "replicas reassigned",
    Kind.BROKER_JOINED: "registered",
    Kind.BROKER_LEFT: "not registered any more",
    Kind.BROKER_MOVED: "advertises another address",
    Kind.BROKER_RESTARTED: "restarted",
    Kind.CONTROLLER_MOVED: "another active controller",
    Kind.SETTING_CHANGED: "changed",
    Kind.FEATURE_LEVEL_RAISED: "feature level raised",
    Kind.FEATURE_LEVEL_LOWERED: "feature level lowered",
}
EXPLANATIONS: Final[Mapping[Kind, str]] = {
    Kind.TOPIC_CREATED: "The complete list of topics before lacked it, and all its partitions are in leader epoch 0. "
    "A topic that a permission hid until now is told from a new one by its leader epochs alone.",
    Kind.TOPIC_APPEARED: "It is not known whether it is new: a permission may have hidden it until now, or the list "
    "before was not complete.",
    Kind.TOPIC_DELETED: "No broker that could be reached has a topic of this name. Its records and the groups' commits for "
    "it are gone.",
    Kind.TOPIC_RECREATED: "The same name has another topic id: the records of the topic before are gone, and commits that "
    "groups kept are about another log.",
    Kind.TOPIC_HIDDEN: "Brokers answer TOPIC_AUTHORIZATION_FAILED: DESCRIBE on the topic was lost. Whether the topic still "
    "exists is not known, and nothing about it is judged.",
    Kind.PARTITIONS_ADDED: "Keys move: records of most keys go to another partition from now on, so that the order of one "
    "key's records is not kept across the change. A group reads new partitions from where "
    "`auto.offset.reset` says: with `latest`, records from before its next metadata refresh are skipped.",
    Kind.REASSIGNMENT_BEGAN: "The added replicas copy the log now. Until they are in sync the partition has more replicas "
    "than before, and counts as under-replicated.",
    Kind.REASSIGNMENT_CANCELLED: "The partition has the replicas from before the reassignment.",
    Kind.REPLICAS_REASSIGNED: "The partition has these replicas from now on, the preferred leader first.",
    Kind.BROKER_JOINED: "The controller lists it among the brokers that are alive. One that was registered before did not "
    "necessarily restart.",
    Kind.BROKER_LEFT: "The controller does not list it any more: it stopped, or its heartbeats do not arrive.",
    Kind.BROKER_MOVED: "The same broker id has another address or rack: clients that keep the address before cannot "
    "reach it.",
    Kind.BROKER_RESTARTED: "Its process is a new one. Producer states were read from disk, and connections were cut.",
    Kind.CONTROLLER_MOVED: "Another controller was elected. Brokers and clients go on; changes waited meanwhile.",
    Kind.SETTING_CHANGED: "Brokers answer with another value, or, for a topic, with the same one from another source.",
    Kind.FEATURE_LEVEL_RAISED: "Brokers and clients use what this level adds. Lowering it may not be possible.",
    Kind.FEATURE_LEVEL_LOWERED: "What the higher level added is not used any more.",
}  # fmt: skip


def explain_change(event: ChangeEvent) -> str:
    """Return in a sentence or two what an event means."""
    return EXPLANATIONS[event.kind]


def summarize_change(event: ChangeEvent) -> str:
    """Return an event in one line: what changed, from what to what, of what."""
    first = event.subjects[0]
    what = _WHAT[event.kind]
    if event.kind is Kind.SETTING_CHANGED:
        what = f"{first.setting} {what}" if common(event, "setting") else "settings changed"
    return f"{_subjects(event)}: {what}{_states(event)}"


def common(event: ChangeEvent, name: str) -> str | None:
    """Return a field of the subjects, None where they differ or have none."""
    values = {getattr(subject, name) for subject in event.subjects}
    [value, *others] = values
    return value if not others else None


def name_of(subject: ChangedSubject) -> str:
    """Return the name of a subject for a person."""
    match subject.kind:
        case SubjectKind.PARTITION:
            return f"{subject.topic}-{subject.partition}"
        case SubjectKind.TOPIC:
            return f"topic {subject.topic}"
        case SubjectKind.BROKER:
            return f"broker {subject.broker}"
        case SubjectKind.FEATURE:
            return str(subject.feature)
        case SubjectKind.CLUSTER:
            return "cluster"


def _subjects(event: ChangeEvent) -> str:
    if event.count == 1:
        return name_of(event.subjects[0])
    kinds = {subject.kind for subject in event.subjects}
    noun = f"{kinds.pop()}s" if len(kinds) == 1 else "subjects"
    names = [_short(subject) for subject in event.subjects[:NAMED]]
    more = ", …" if event.count > len(names) else ""
    return f"{event.count:,} {noun} ({', '.join(names)}{more})"


def _short(subject: ChangedSubject) -> str:
    match subject.kind:
        case SubjectKind.TOPIC:
            return str(subject.topic)
        case SubjectKind.BROKER:
            return str(subject.broker)
        case _:
            return name_of(subject)


def _states(event: ChangeEvent) -> str:
    """Return the state before and after, where all subjects have the same ones."""
    before, after = common(event, "before"), common(event, "after")
    if before is None and after is None:
        return ""
    old = _state(before, common(event, "before_source"))
    new = _state(after, common(event, "after_source"))
    if event.kind is Kind.BROKER_RESTARTED:
        return f", {after}"
    if before is None or after is None:
        is_setting = event.kind is Kind.SETTING_CHANGED
        return f", from {old} to {new}" if is_setting else f" ({new if before is None else old})"
    return f", from {old} to {new}"


def _state(value: str | None, source: str | None) -> str:
    if value is None:
        return "unknown" if source is None else f"unknown ({source})"
    return value if source is None else f"{value} ({source})"

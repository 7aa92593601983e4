"""The label text of an exporter's series, kept from round to round: it costs more than numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rules.facts.column import Int64s
from rules.facts.snapshot import Snapshot
from service.metrics.dropin.exporter import LabelNames, Subject
from service.metrics.dropin.subjects import Subjects
from service.metrics.lines import closed, label
from service.metrics.table import row_labels


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelTable:
    """The closed labels of the series of each subject, and their rows in its column."""

    texts: Mapping[Subject, Sequence[bytes]]
    places: Mapping[Subject, Int64s]
    subjects: Subjects  # for which it was written

    @classmethod
    def of(cls, snapshot: Snapshot, subjects: Subjects, names: LabelNames) -> LabelTable:
        """Write the labels of all subjects under the exporter's names of labels."""
        index, commits = snapshot.partitions.index, snapshot.commits
        rows = row_labels(index, names.topic, names.partition)
        topics = [label(names.topic, topic) for topic in index.topics]
        groups = [label(names.group, group.group_id) for group in snapshot.groups]
        owners, places = commits.group[subjects.commits], commits.row[subjects.commits]
        return cls(
            texts={
                Subject.PARTITION: closed(_at(rows, subjects.rows)),
                Subject.TOPIC: closed(_at(topics, subjects.topics)),
                Subject.COMMIT: _pairs(_at(groups, owners), _at(rows, places)),
                Subject.GROUP_TOPIC: _pairs(
                    _at(groups, subjects.pair_groups), _at(topics, subjects.pair_topics)
                ),
                Subject.GROUP: closed(_at(groups, subjects.groups)),
            },
            places={
                Subject.PARTITION: subjects.rows,
                Subject.TOPIC: subjects.topics,
                Subject.COMMIT: subjects.commits,
                Subject.GROUP_TOPIC: np.arange(len(subjects.pair_groups), dtype=np.int64),
                Subject.GROUP: subjects.groups,
            },
            subjects=subjects,
        )


def _at(pieces: Sequence[bytes], places: Int64s) -> list[bytes]:
    return [pieces[place] for place in places.tolist()]


def _pairs(first: Iterable[bytes], second: Iterable[bytes]) -> list[bytes]:
    return closed(left + b"," + right for left, right in zip(first, second, strict=True))

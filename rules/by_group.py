"""One judgement per group from the judgements of its commits: one cause is one finding.

The worst verdict of its commits is the group's, and the finding shows the commits that have it, each
with the member that owns its partition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from rules.evidence import Evidence, Scalar
from rules.facts.column import Bools, Column, Int64s
from rules.judgement import CommitSubjects, GroupSubjects, Judgement
from rules.owners import owners_evidence

SHOWN: Final = 10  # partitions in one finding

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a group's finding shows of the commits that decide it: names of their evidence."""

    totals: Mapping[str, str]  # name of the sum -> of what
    most: Mapping[str, str]  # name of the largest -> of what
    each: tuple[str, ...]  # per partition
    # More of one partition, by the position of its commit in the snapshot.
    remark: Callable[[int], Mapping[str, Scalar]] = lambda _: {}


def by_group(judgement: Judgement, commits: CommitSubjects, shown: Shown) -> Judgement:
    """Return the judgement of the groups that have commits among these subjects."""
    of_commit = commits.snapshot.commits.group[commits.places]
    groups, starts = np.unique(of_commit, return_index=True)  # commits are ordered by group
    counts = np.diff(np.append(starts, len(of_commit)))
    verdicts = _largest(judgement.verdicts, starts)
    decides = judgement.verdicts == np.repeat(verdicts, counts)
    rank = np.where(decides, judgement.reason.astype(np.int64), len(judgement.reasons))
    evidence = {
        name: _sum(judgement.evidence[of], decides, starts) for name, of in shown.totals.items()
    }
    for name, of in shown.most.items():
        evidence[name] = _most(judgement.evidence[of], decides, starts)
    evidence["partition_count"] = Column.known(_sums(decides.astype(np.int64), starts))
    ends = starts + counts

    def details(position: int) -> Evidence:
        places = np.arange(starts[position], ends[position])
        return {"partitions": _rows(judgement, commits, places[decides[places]], shown)}

    return Judgement(
        rule=judgement.rule,
        subjects=GroupSubjects(commits.snapshot, groups.astype(np.int64)),
        verdicts=verdicts,
        reasons=judgement.reasons,
        # The reasons of a rule are in order of importance; the first one becomes the group's.
        reason=(-_largest(-rank, starts)).astype(np.int8),
        evidence=evidence,
        details=details,
        questions=judgement.questions,
    )


def _rows(
    judgement: Judgement, commits: CommitSubjects, places: Int64s, shown: Shown
) -> list[dict[str, Scalar]]:
    """Return the first partitions, those with the largest share of the total first."""
    first = next(iter(shown.totals.values()))
    order = np.argsort(-judgement.evidence[first].values[places], kind="stable")
    chosen = places[order][:SHOWN]
    snapshot, of_commit = commits.snapshot, commits.places[chosen]
    index = snapshot.partitions.index
    group, row = snapshot.commits.group[of_commit], snapshot.commits.row[of_commit]
    topic = np.searchsorted(index.starts, row, side="right") - 1
    numbers = (row - index.starts[topic]).tolist()
    owners = owners_evidence(snapshot, group, row)
    columns = {name: judgement.evidence[name].take(chosen).to_list() for name in shown.each}
    return [
        {
            "topic": index.topics[position],
            "partition": numbers[place],
            **{name: values[place] for name, values in columns.items()},
            **owners[place],
            **shown.remark(int(of_commit[place])),
        }
        for place, position in enumerate(topic.tolist())
    ]


def _largest(values: NDArray[T], starts: Int64s) -> NDArray[T]:
    largest: NDArray[T] = np.maximum.reduceat(values, starts) if len(starts) else values[:0]
    return largest


def _sums(values: Int64s, starts: Int64s) -> Int64s:
    sums: Int64s = np.add.reduceat(values, starts) if len(starts) else values[:0]
    return sums


def _sum(column: Column, decides: Bools, starts: Int64s) -> Column:
    counted = column.where(decides)
    return Column(_sums(counted.values, starts), _largest(counted.valid, starts))


def _most(column: Column, decides: Bools, starts: Int64s) -> Column:
    counted = column.where(decides)
    return Column(_largest(counted.values, starts), _largest(counted.valid, starts))

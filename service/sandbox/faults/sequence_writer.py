"""Single requests in the place of a client that writes in order and then goes on behind a loss."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Self

from rules.facts.broker_log import SequenceForm
from service.sandbox.faults.fault_context import FaultContext
from service.sandbox.workloads.raw_producer import (
    Protocol,
    RawProducer,
    SequencedProducer,
    after,
    new_producer,
)

TRIES: Final = 3  # an old client sends a rejected batch again and again


@dataclass(slots=True, kw_only=True)
class RawWriter:
    """A stepwise producer of single requests, in batches of the size that the options name."""

    context: FaultContext
    producer: SequencedProducer
    owner: RawProducer | None  # of the transaction; None: without
    next_sequence: int = field(default=0, init=False)

    @classmethod
    def open(cls, context: FaultContext) -> Self:
        """Return one with a producer id of its own; the form decides whether it has a transaction."""
        run = context.run
        if run.options.form is not SequenceForm.EXPECTED_ZERO:
            producer = new_producer(run.cluster, run.new_name)
            return cls(context=context, producer=producer, owner=None)
        owner = run.producer(protocol=Protocol.V2)
        owner.begin()
        return cls(context=context, producer=owner.sequenced(), owner=owner)

    def begin_epoch(self) -> None:
        """Begin with sequence 0 in a new epoch; a transaction has begun with one already."""
        if self.owner is None:
            self.producer.producer_epoch += 1
        self.next_sequence = 0

    def hand_over(self, count: int) -> None:
        """Append so many records more."""
        for size in self.context.batches(count):
            self.producer.send(self.context.where, self.next_sequence, size)
            self.next_sequence = after(self.next_sequence, size)

    def hold(self) -> None:
        """Do nothing: it sends nothing by itself."""

    def be_rejected(self, count: int) -> None:
        """Try to append so many records more, several times, and give them up."""
        for _ in range(TRIES):
            self.producer.expect_rejection(self.context.where, self.next_sequence, count)
        if self.owner is not None:
            self.owner.end(commit=False)
            self.context.run.await_release(self.context.where, self.owner, 0)

    def has_given_up(self) -> bool:
        """Return True: an application would have got an error."""
        return True

    def close(self) -> None:
        """Do nothing: there are no connections of its own."""

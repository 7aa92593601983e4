"""Batches that a partition holds already, or that belong to an epoch that is over: nothing is lost.

A leader remembers the last five batches of a producer. One that is among them, to the letter, is
acknowledged again without a word; every other repetition is rejected as out of order.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from rules.errors import SandboxError
from rules.facts.broker_log import SequenceForm
from rules.facts.sequence_verdicts import SequenceClass
from service.sandbox.faults.fault_context import FaultContext, Verdict, make_context
from service.sandbox.faults.fault_run import FaultRun
from service.sandbox.faults.rule_names import (
    DUPLICATES,
    EVERY_SEQUENCE_RULE,
    GAP_REORDERING,
    NOTHING_LOST,
    SEQUENCE_BUG,
)
from service.sandbox.faults.sequence_check import Expected
from service.sandbox.faults.sequence_context import (
    SequenceInjection,
    end_of,
    episode_of,
    sequence_truth,
)
from service.sandbox.faults.sequence_truth import SequenceTruth
from service.sandbox.faults.sequence_writer import TRIES
from service.sandbox.workloads.sequenced_producer import SequencedProducer, new_producer

REMEMBERED: Final = 5  # batches per producer (ProducerStateEntry of the broker)
DUPLICATE: Final = Verdict(
    silent=(*EVERY_SEQUENCE_RULE, *NOTHING_LOST), ends="it is over: it was acknowledged again"
)
STALE: Final = Verdict(
    rule=DUPLICATES,
    silent=(*NOTHING_LOST, GAP_REORDERING, SEQUENCE_BUG),
    ends="it is over: the records are there already",
)
RESTART: Final = Verdict(
    rule=SEQUENCE_BUG,
    silent=(*NOTHING_LOST, DUPLICATES),
    ends="never: the client goes on like that until it is mended",
)


# ---------------------------------------------------------------------- the same batch again
def prepare_duplicate(run: FaultRun) -> SequenceInjection:
    """Write as many batches as a leader remembers."""
    return partial(_inject_duplicate, *_written(run, REMEMBERED))


def _inject_duplicate(context: FaultContext, producer: SequencedProducer) -> SequenceTruth:
    where, end = context.where, end_of(context)
    first = end - REMEMBERED * context.run.options.batch
    offset = producer.send(where, 0, context.run.options.batch)
    if (offset, end_of(context)) != (first, end):
        raise SandboxError(f"{where} took the duplicate as a new batch at {offset}")
    return sequence_truth(context, DUPLICATE, [])


def prepare_stale_retry(run: FaultRun) -> SequenceInjection:
    """Write one batch more than a leader remembers, or two that will come again as one."""
    batches = 2 if run.options.other_borders else REMEMBERED + 1
    return partial(_inject_stale_retry, *_written(run, batches), batches)


def _inject_stale_retry(
    context: FaultContext, producer: SequencedProducer, batches: int
) -> SequenceTruth:
    options, where = context.run.options, context.where
    count = options.batch * (2 if options.other_borders else 1)
    producer.expect_rejection(where, 0, count)
    expected = Expected(
        sequence_class=SequenceClass.STALE_RETRY,
        producer_epoch=producer.producer_epoch,
        rejected=(0,),
        current_sequence=batches * options.batch - 1,
        is_healed=False,
    )
    if options.resend:
        producer.producer_epoch += 1
        producer.send(where, 0, count)
    episode = episode_of(context, producer.producer_id, expected)
    return sequence_truth(context, STALE, [episode])


# ---------------------------------------------------------------------- a client's mistake
def prepare_restart(run: FaultRun) -> SequenceInjection:
    """Write the batch whose sequences the client will not forget."""
    return partial(_inject_restart, *_written(run, 1))


def _inject_restart(context: FaultContext, producer: SequencedProducer) -> SequenceTruth:
    """Go on with the old sequences in two new epochs, again and again."""
    where, batch = context.where, context.run.options.batch
    for _ in range(2):
        producer.producer_epoch += 1
        for _ in range(TRIES):
            producer.expect_rejection(where, batch, batch)
    expected = Expected(
        sequence_class=SequenceClass.SEQUENCE_RESTART,
        producer_epoch=1,
        form=SequenceForm.NEW_EPOCH,
        rejected=(batch,) * 2 * TRIES,
        is_healed=False,
    )
    episode = episode_of(context, producer.producer_id, expected)
    return sequence_truth(context, RESTART, [episode])


def _written(run: FaultRun, batches: int) -> tuple[FaultContext, SequencedProducer]:
    """Return a producer that has written so many batches."""
    context = make_context(run)
    producer, batch = new_producer(run.cluster, run.new_name), run.options.batch
    for number in range(batches):
        producer.send(context.where, number * batch, batch)
    return context, producer

"""Faults by name on the sandbox's brokers, each with the truth that a monitor has to find."""

from service.sandbox.faults.fault_run import Client, FaultOptions
from service.sandbox.faults.loss_truth import LossTruth
from service.sandbox.faults.making import (
    ActiveFault,
    LossName,
    Prepared,
    SequenceName,
    begin_fault,
    make_fault,
    prepare_loss,
    prepare_sequence,
)
from service.sandbox.faults.registry import FAULTS, AnyTruth, Fault
from service.sandbox.faults.sequence_truth import SequenceEpisode, SequenceTruth
from service.sandbox.faults.truth import Truth

__all__ = [
    "FAULTS",
    "ActiveFault",
    "AnyTruth",
    "Client",
    "Fault",
    "FaultOptions",
    "LossName",
    "LossTruth",
    "Prepared",
    "SequenceEpisode",
    "SequenceName",
    "SequenceTruth",
    "Truth",
    "begin_fault",
    "make_fault",
    "prepare_loss",
    "prepare_sequence",
]

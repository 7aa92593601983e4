"""Faults by name on the sandbox's brokers, each with the truth that a watcher has to find."""

from service.sandbox.faults.registry import FAULTS, Fault, Made, begin_fault, make_fault
from service.sandbox.faults.stage import FaultOptions
from service.sandbox.faults.truth import Truth

__all__ = [
    "FAULTS",
    "Fault",
    "FaultOptions",
    "Made",
    "Truth",
    "begin_fault",
    "make_fault",
]

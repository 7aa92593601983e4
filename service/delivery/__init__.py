"""Sends what is in the outbox, and observations after what does not arrive."""

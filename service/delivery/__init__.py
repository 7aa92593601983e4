"""Sends what is in the outbox, and looks after what does not arrive."""

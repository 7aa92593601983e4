"""Sends the notifications in the outbox, and follows up on those that are not delivered."""

"""History: what every round saw, kept as packed series for the nights that learn from it."""

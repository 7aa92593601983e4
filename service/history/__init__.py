"""History: the samples of every round, stored as packed series, which baseline runs learn from."""

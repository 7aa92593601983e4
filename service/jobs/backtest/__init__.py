"""The backtest: which days are replayed, the Spark job that does it, and what came of it."""

"""`tidemark backtest`: what would have opened in past days."""

"""What lasts: findings, checkpoints and tokens in PostgreSQL; nothing above knows SQL."""

"""The baseline of a series, learnt by every nightly run, and how far a value is from it: pure."""

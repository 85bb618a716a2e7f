"""Controls: what a certified model is held against, at the same operating point."""

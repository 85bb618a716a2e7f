"""What is proved with the votes of each division: one object per theorem, found by its name."""

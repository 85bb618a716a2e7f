"""Facts about the theorems of each division, which files, claims and reports read."""

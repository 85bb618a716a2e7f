"""Scores that appended rows can only raise: whoever is flagged stays flagged, whatever is appended."""

"""Live graphs: decisions and certificates that are current after every event."""

"""What each theorem says about votes, derived a second time: one object per theorem, found by its name."""

"""Models that are trained apart from each other, so that a poisoned training graph alters one of them."""

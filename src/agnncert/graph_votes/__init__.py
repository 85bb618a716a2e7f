"""Graph votes: a score of what an attacker cannot change, and bounded votes of what can be changed item by item."""

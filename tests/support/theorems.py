"""The theorems of the library and its add-ons, by name."""

from agnncert.certificates.theorem_facts import known_theorems

THEOREMS = known_theorems()

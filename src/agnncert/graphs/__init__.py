"""From a user's ``Data`` to a checked graph in canonical form, its hashes, and attacks written as changes to it."""

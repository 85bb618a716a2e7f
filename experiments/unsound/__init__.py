"""Released certificates that are false: each module states the published rule and breaks it on a tiny graph.

    python -m experiments.unsound

Rules and facts are those of the papers and of their released programs; the code is ours, without this library, so that
each file can be read by itself. ``docs/unsound.md`` says where each fault was found and what a sound rule looks like.
"""

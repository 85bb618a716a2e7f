"""The command line: one verb per job, one file per verb.

Everything heavy is imported inside the commands, so that help and ``agnncert verify FILE`` answer at once.
"""

from agnncert.cli.main import main

__all__ = ["main"]

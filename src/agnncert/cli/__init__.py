"""The command line: ``main`` runs a command, ``commands`` holds one function per command.

``options`` makes their options, ``screen`` prints what came out, ``app`` puts everything together.
"""

from agnncert.cli.main import main

__all__ = ["main"]

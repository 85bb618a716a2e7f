"""The command line: one verb per job."""


def main() -> None:
    """Entry point of the ``agnncert`` command."""

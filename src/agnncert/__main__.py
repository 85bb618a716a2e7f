"""``python -m agnncert``: the same as the command ``agnncert``."""

from agnncert.cli import main

raise SystemExit(main())

"""Budgets and numbers of certificates, as requests and answers have them."""

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from agnncert.certificates.budget import Budget
from agnncert.errors import SettingsError

_YES_OR_NO = {"true": True, "1": True, "false": False, "0": False}


def read_budget(stated: Mapping[str, str]) -> Budget:
    """Returns the budget that fields describe, as text.

    Raises:
        SettingsError: A field is unknown, or no whole number from 0 on.
    """
    known = {entry.name for entry in fields(Budget)}
    values: dict[str, Any] = {}
    for name, text in stated.items():
        if name not in known:
            raise SettingsError(f"a budget has no {name!r:.60}: it has {', '.join(sorted(known))}.")
        values[name] = _yes_or_no(name, text) if name == "target_features" else _amount(name, text)
    return Budget(**values)


def _yes_or_no(name: str, text: str) -> bool:
    if text.lower() not in _YES_OR_NO:
        raise SettingsError(f"{name}={text!r:.60}: expected true or false.")
    return _YES_OR_NO[text.lower()]


def _amount(name: str, text: str) -> float:
    if text == "inf":
        return math.inf
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise SettingsError(f"{name}={text!r:.60}: expected a whole number from 0 on, or inf.")
    return int(text)


def json_number(value: float) -> int | str:
    """Returns a number as JSON can hold it, which has no infinity."""
    return "any" if value == math.inf else int(value)

"""Settings in TOML: written so that ``tomllib`` reads the same values back."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agnncert.errors import SettingsError


def toml_text(tables: Mapping[str, Mapping[str, Any]]) -> str:
    r"""Tables of plain values as TOML.

    Example:
        >>> toml_text({"train": {"data": "cora-ml", "lr": 0.01, "set": {"num_layers": 2}}})
        '[train]\ndata = "cora-ml"\nlr = 0.01\nset = { num_layers = 2 }\n'
    """
    parts = []
    for name, table in tables.items():
        lines = [f"[{_key(name)}]", *(f"{_key(key)} = {_value(value)}" for key, value in table.items())]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file.

    Raises:
        SettingsError: It cannot be read or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror or error}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not TOML: {error}.") from error


def _key(name: str) -> str:
    bare = name != "" and all(c.isascii() and (c.isalnum() or c in "-_") for c in name)
    return name if bare else _text(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(k)} = {_value(v)}' for k, v in value.items())} }}"
    raise SettingsError(f"{value!r} cannot be stored among settings: expected text, a number, or yes or no.")


def _text(text: str) -> str:
    # JSON escapes are TOML escapes, apart from DEL, which TOML wants escaped too.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

"""Structured logs: one JSON object per line."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class JsonLines(logging.Formatter):
    """Writes a log record as one line of JSON: time, level, logger, message, and further fields by name."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line."""
        content: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        content |= {name: value for name, value in vars(record).items() if name not in _USUAL}
        if record.exc_info:
            content["error"] = self.formatException(record.exc_info)
        return json.dumps(content, default=str)


def log_as_json(level: int = logging.INFO) -> None:
    """Has everything that the library and the server log written to standard error, one JSON object per line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("agnncert", "agnncert_live", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False

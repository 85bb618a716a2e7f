"""A scan as SARIF 2.1.0, the format in which code hosts and editors take findings."""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

import agnncert
from agnncert.storage import write_atomic
from agnncert_code.findings import Scan, ScannedFunction, accuracy_text, amount

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
MOST_RESULTS = 5_000  # code hosts show no more of one run
MOST_RELATED = 10  # statements that a result points at
RULE = "agnncert/suspicious-function"
_ROOT = "%SRCROOT%"


def write_sarif(scan: Scan, path: str | Path) -> Path:
    """Writes the flagged functions of a scan as SARIF. Its folder is made if it is missing."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, json.dumps(sarif_log(scan), indent=2) + "\n")
    return path


def sarif_log(scan: Scan) -> dict[str, Any]:
    """Returns a SARIF log with one run: a result for every flagged function, a notification for what was skipped."""
    results = [_result(scan, function) for function in scan.flagged[:MOST_RESULTS]]
    left_out = len(scan.flagged) - len(results)
    notes = [_notification(_without_line(place), why) for place, why in scan.skipped.items()]
    notes += [_notification(file, "parts of it cannot be parsed", "note") for file in scan.partial_files]
    if left_out:
        notes.append({"level": "warning", "message": {"text": f"{left_out:,} further results are left out."}})
    run = {
        "tool": {"driver": _driver(scan)},
        "automationDetails": {"id": "agnncert/scan/"},
        "originalUriBaseIds": {_ROOT: {"description": {"text": "Folder from which the paths of files count."}}},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notes}],
        "results": results,
        "columnKind": "unicodeCodePoints",
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _driver(scan: Scan) -> dict[str, Any]:
    name = scan.name_of(scan.suspicious)
    about = (
        f"A vote of the function's statements elected the class “{name}”. That is the opinion of a trained model, not "
        "a finding of a defect. The number of edited statements is proved: no attacker who inserts, deletes or "
        "replaces that many statements of the function can change the verdict. " + accuracy_text(scan.accuracy)
    )
    rule = {
        "id": RULE,
        "name": "SuspiciousFunction",
        "shortDescription": {"text": f"Function elected “{name}” by the votes of its statements"},
        "fullDescription": {"text": about},
        "help": {"text": f"{about} Read first the statements that the result points at: they voted for it."},
        "defaultConfiguration": {"level": "warning"},
        "properties": {"tags": ["security", "machine-learning"], "precision": "low"},
    }
    return {
        "name": "agnncert",
        "version": agnncert.__version__,
        "semanticVersion": agnncert.__version__,
        "rules": [rule],
        "properties": {
            "detectorAccuracy": None if scan.accuracy is None else asdict(scan.accuracy),
            "detectorAccuracyText": accuracy_text(scan.accuracy),
        },
    }


def _result(scan: Scan, function: ScannedFunction) -> dict[str, Any]:
    """Returns a flagged function as a result, which points at statements that voted for it."""
    location = _location(function.file, function.line, function.last_line)
    if function.name:
        location["logicalLocations"] = [{"name": function.name, "kind": "function"}]
    result: dict[str, Any] = {
        "ruleId": RULE,
        "ruleIndex": 0,
        "level": "warning",
        "message": {"text": _message(scan, function)},
        "locations": [location],
        "rank": round(100 * function.score, 2),
        "partialFingerprints": {"agnncertStatements/v1": function.fingerprint},
        "properties": {
            "votes": dict(zip(scan.class_names, function.votes, strict=True)),
            "editedStatementsWithstood": _number(function.edited),
            "insertedStatementsWithstood": _number(function.inserted),
            "deletedStatementsWithstood": _number(function.deleted),
            "certificate": function.certificate,
            "target": function.target,
        },
    }
    related = _related_locations(scan, function)
    if related:
        result["relatedLocations"] = related
    return result


def _message(scan: Scan, function: ScannedFunction) -> str:
    name = scan.name_of(scan.suspicious)
    votes = function.votes[scan.suspicious]
    others = function.against(scan.suspicious)
    text = (
        f"{function.name or 'A function'} looks {name}: {votes:,} votes to {others:,}. "
        f"The verdict is certified against {edits_words(function.edited)}."
    )
    if function.partial:
        text += " Parts of the function could not be parsed."
    return text


def _related_locations(scan: Scan, function: ScannedFunction) -> list[dict[str, Any]]:
    """Returns the first statements that voted for the suspicious class."""
    name = scan.name_of(scan.suspicious)
    for_it = [vote for vote in function.spoke if vote.vote == scan.suspicious and vote.stable]
    locations = []
    for k, vote in enumerate(for_it[:MOST_RELATED]):
        message = {"text": f"voted {name}: {vote.text[:200]}"}
        locations.append({**_location(function.file, vote.line), "id": k, "message": message})
    return locations


def edits_words(edited: float) -> str:
    """Returns a number of edited statements in words.

    Example:
        >>> [edits_words(number) for number in (1.0, 3.0, math.inf, 0.0, -1.0)][:2]
        ['1 edited statement', '3 edited statements']
    """
    if edited <= 0:
        return "no edited statement"
    if math.isinf(edited):
        return "any number of edited statements"
    return f"{amount(edited)} edited statement{'' if edited == 1 else 's'}"


def _location(file: str, line: int, last_line: int | None = None) -> dict[str, Any]:
    region = {"startLine": max(line, 1)}
    if last_line is not None:
        region["endLine"] = max(last_line, line, 1)
    return {"physicalLocation": {"artifactLocation": _artifact(file), "region": region}}


def _artifact(file: str) -> dict[str, str]:
    return {"uri": quote(file), "uriBaseId": _ROOT}


def _notification(file: str, why: str, level: str = "warning") -> dict[str, Any]:
    location = {"physicalLocation": {"artifactLocation": _artifact(file)}}
    return {"level": level, "message": {"text": f"{file} {why}"}, "locations": [location]}


def _without_line(place: str) -> str:
    file, _, line = place.rpartition(":")
    return file if file and line.isdecimal() else place


def _number(value: float) -> int | str:
    return "any" if math.isinf(value) else int(value)

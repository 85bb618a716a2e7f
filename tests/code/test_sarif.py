"""SARIF 2.1.0: the fields that the standard requires, the forms that it gives them, and what code hosts ask for."""

import json
import re
from dataclasses import replace
from urllib.parse import unquote

from agnncert_code.sarif import MOST_RESULTS, edits_words, sarif_log, write_sarif

from ..support.scanned import hostile_scan

LEVELS = ("none", "note", "warning", "error")


def check_message(message):
    assert set(message) <= {"text", "markdown", "id", "arguments"}
    assert message["text"].strip()


def check_location(location, bases):
    physical = location["physicalLocation"]
    artifact = physical["artifactLocation"]
    assert re.fullmatch(r"[A-Za-z0-9._~/%!$&'()*+,;=:@-]+", artifact["uri"])  # a valid relative reference
    assert not artifact["uri"].startswith("/")
    assert artifact["uriBaseId"] in bases
    region = physical.get("region")
    if region is not None:
        assert 1 <= region["startLine"] <= region.get("endLine", region["startLine"])
    for logical in location.get("logicalLocations", []):
        assert logical["name"]
    if "message" in location:
        check_message(location["message"])


def check_log(log):
    """The structural rules of SARIF 2.1.0 (sections 3.13 to 3.52) for all that is written here."""
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    assert isinstance(log["runs"], list)
    for run in log["runs"]:
        driver = run["tool"]["driver"]
        assert driver["name"]
        assert re.fullmatch(r"\d+\.\d+\.\d+.*", driver["semanticVersion"])
        ids = [rule["id"] for rule in driver["rules"]]
        assert len(set(ids)) == len(ids)
        for rule in driver["rules"]:
            for name in ("shortDescription", "fullDescription", "help"):
                assert rule[name]["text"]
            assert rule["defaultConfiguration"]["level"] in LEVELS
        bases = run["originalUriBaseIds"]
        for invocation in run["invocations"]:
            assert isinstance(invocation["executionSuccessful"], bool)
            for note in invocation["toolExecutionNotifications"]:
                check_message(note["message"])
                assert note["level"] in LEVELS
                for location in note.get("locations", []):
                    check_location(location, bases)
        assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
        for result in run["results"]:
            check_message(result["message"])
            assert result["ruleId"] == ids[result["ruleIndex"]]
            assert result["level"] in LEVELS
            assert 0 <= result["rank"] <= 100
            assert len(result["locations"]) == 1
            for location in [*result["locations"], *result.get("relatedLocations", [])]:
                check_location(location, bases)
            related = [location["id"] for location in result.get("relatedLocations", [])]
            assert len(set(related)) == len(related)
            assert all(isinstance(value, str) for value in result["partialFingerprints"].values())
        assert run["automationDetails"]["id"]


def test_a_scan_is_written_as_the_standard_asks(tmp_path):
    log = json.loads(write_sarif(hostile_scan(), tmp_path / "deep" / "x.sarif").read_text(encoding="utf-8"))
    check_log(log)
    (result,) = log["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert unquote(place["artifactLocation"]["uri"]) == hostile_scan().functions[0].file
    assert place["region"] == {"startLine": 1, "endLine": 6}
    assert "certified against 1 edited statement." in result["message"]["text"]
    assert result["properties"]["deletedStatementsWithstood"] == "any"
    # of three statements one abode by its vote for the suspicious class; another was too close to call
    assert [one["physicalLocation"]["region"]["startLine"] for one in result["relatedLocations"]] == [3]


def test_what_was_skipped_is_told_and_a_line_is_no_part_of_a_file_name():
    notes = sarif_log(hostile_scan())["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    places = [note["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for note in notes]
    assert [note["level"] for note in notes] == ["warning", "warning", "note"]
    assert places[1] == "src/b.c"


def test_code_hosts_get_no_more_results_than_they_show():
    one = hostile_scan().functions[0]
    many = replace(hostile_scan(), functions=(one,) * (MOST_RESULTS + 3))
    log = sarif_log(many)
    check_log(log)
    assert len(log["runs"][0]["results"]) == MOST_RESULTS
    assert "3 further results" in log["runs"][0]["invocations"][0]["toolExecutionNotifications"][-1]["message"]["text"]


def test_edited_statements_in_words():
    words = [edits_words(number) for number in (-1, 0, 1, 1200, float("inf"))]
    assert words == [
        "no edited statement", "no edited statement", "1 edited statement", "1,200 edited statements",
        "any number of edited statements",
    ]  # fmt: skip

"""SARIF 2.1.0: the fields that the standard requires, the forms that it gives them, and what code hosts ask for."""

import json
from dataclasses import replace
from urllib.parse import unquote

from agnncert_code.sarif import MOST_RESULTS, edits_words, sarif_log, write_sarif
from tests.support.sarif import check_log
from tests.support.scanned import hostile_scan


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

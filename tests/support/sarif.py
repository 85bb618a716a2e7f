"""The structural rules of SARIF 2.1.0, checked by hand."""

import re

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

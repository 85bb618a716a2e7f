import json
from dataclasses import replace

import pytest

from tests.support.scanned import hostile_scan


def test_a_scan_tells_flagged_functions_and_what_their_verdicts_withstand():
    scan = hostile_scan()
    assert [function.target for function in scan.flagged] == [0]
    assert len(scan.withstanding(1)) == 1
    assert scan.withstanding(2) == ()
    assert str(scan).startswith("1 of 2 functions: bad")


def test_a_scan_as_json_has_no_number_that_json_lacks():
    stored = json.loads(json.dumps(hostile_scan().to_json(), allow_nan=False))
    assert [row["deleted"] for row in stored["functions"]] == ["inf", -1]
    assert stored["functions"][1]["label"] == "fine"


def test_a_scan_as_a_table():
    pytest.importorskip("pandas")
    table = hostile_scan().to_pandas()
    assert table["line"].tolist() == [1, 7]
    assert table["votes_1"].tolist() == [3, 0]


def test_a_class_that_cannot_win_is_no_rival():
    one = replace(hostile_scan().functions[0], votes=(4, 7, -(2**30)))
    assert one.against(1) == 4

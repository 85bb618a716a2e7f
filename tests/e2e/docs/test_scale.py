"""Estimates for large graphs are computed: from rows that are given here, and, on the page, from the committed ones."""

import pytest

from experiments.benchmarks import large, parts, scale


def row(part: int, division: str, groups: int = 80, **changes):
    edges = 61_859_140 // part
    phases = {"checks and order": 1.0, "hashing": 2.0, "shuffle": 3.0, "layout": 4.0, "casting": 10.0, "tally": 5.0}
    usual = {
        "cell": f"certify:{part}:{division}:{groups}", "nodes": 2_449_029 // part, "edges": edges, "groups": groups,
        "votes": 40 * 2_449_029 // part, "seconds": 30.0 / part, "cpu_seconds": 25.0 / part, "trained": False,
        "phases_cpu": {name: 16 * value / part for name, value in phases.items()}, "peak_gib": 0.5 + 6.0 / part,
        "peak_save_gib": 0.5 + 6.0 / part,
        "seconds_save": 2.0, "cpu_seconds_save": 2.0 / part, "seconds_verify": 3.0, "cpu_seconds_verify": 3.0 / part,
        "file_mb": 700 / part, "machine": {"threads": 1, "load": 0.0, "cores": 2}, "accuracy": 0.5, "certified_accuracy": [0.5] * 41,
    }  # fmt: skip
    return usual | changes


ROWS = [row(part, division) for part in (64, 16, 4) for division in ("node", "edge")]


def of_parts(**changes):
    usual = {"step": "certify", "workers": "none", "edges": 10**7, "nodes": 10**6, "spans": 1, "cpu_seconds": 12.0}
    return usual | changes


PARTS = [
    of_parts(),
    of_parts(spans=5, cpu_seconds=20.0),
    of_parts(edges=10**8, nodes=10**7, spans=4, cpu_seconds=190.0),
    {"step": "convert", "edges": 10**7, "cpu_seconds": 25.0},
    {"step": "convert", "edges": 10**8, "cpu_seconds": 200.0},
]


def test_memory_grows_as_between_the_two_largest_sizes():
    rate = scale.InMemory.of(ROWS)
    assert rate.memory(2 * 61_859_140) == pytest.approx(6.5 * 2**30, rel=1e-3)
    assert rate.fixed == pytest.approx(0.5 * 2**30, rel=1e-3)
    assert rate.seconds == pytest.approx(25.0 / 4 / (2 * 61_859_140 // 4), rel=1e-3)
    with pytest.raises(SystemExit, match="two sizes are needed for edge"):
        scale.InMemory.of(ROWS[:3], "edge")


def test_two_numbers_of_spans_say_what_an_arc_and_a_sender_cost():
    rate = scale.InParts.of(PARTS)
    assert rate.sender == pytest.approx(2e-6)
    assert rate.arc == pytest.approx(1e-6)
    assert rate.write == pytest.approx(2e-6)
    for too_few in ([], [PARTS[0], *PARTS[2:]]):
        with pytest.raises(SystemExit, match="two numbers of spans"):
            scale.InParts.of(too_few)


def test_what_the_rates_foretell_of_a_larger_run_stands_beside_it():
    [(row, expected)] = scale.foretold(PARTS)
    assert (row["cpu_seconds"], expected) == (190.0, pytest.approx(180.0))
    [said] = scale.confirmed(PARTS)
    assert "100,000,000 directed edges in 4 spans they foretell 3.0 min" in said
    assert "3.2 min were measured" in said


def test_spans_are_those_that_certify_plans():
    runs = [row for row in parts.read_rows() if row.get("spans")]
    assert len({row["spans"] for row in runs}) > 1
    for row in runs:
        memory = 1e9 * float(row["memory"].removesuffix("GB"))
        assert abs(scale.spans_of(row["nodes"], row["edges"], parts.GROUPS, memory) - row["spans"]) <= 1, row


def test_senders_that_do_not_fit_need_more_groups():
    with pytest.raises(ValueError, match="more groups are needed"):
        scale.spans_of(10**9, 10**10, 80, 8e9)
    assert scale.spans_of(10**9, 10**10, 8000, 8e9) > 1


def test_the_table_is_what_the_committed_rows_give():
    rows, of_parts, text = scale.read_rows(), parts.read_rows(), scale.PAGE.read_text(encoding="utf-8")
    assert scale.filled(text, rows, of_parts) == text
    assert all(r["synthetic"] for r in rows)
    raised = [{**r, "peak_gib": 2 * r["peak_gib"]} if r["cell"] == "certify:1:node:80" else r for r in rows]
    assert scale.filled(text, raised, of_parts) != text
    slower = [{**r, "cpu_seconds": 2 * r["cpu_seconds"]} for r in of_parts]
    assert scale.filled(text, rows, slower) != text


def test_time_within_a_phase_counts_for_the_innermost_one():
    clock = large.Clock()
    with clock.phase("outer"), clock.phase("inner"):
        sum(range(300_000))
    assert clock.cpu["inner"] > clock.cpu["outer"]
    assert clock.cpu.keys() == clock.seconds.keys() == {"inner", "outer"}


def test_the_table_about_parts_is_made_from_the_committed_rows():
    text = parts.PAGE.read_text(encoding="utf-8")
    assert parts.filled(text, parts.read_rows()) == text


def test_files_of_one_graph_are_the_same_bytes_whoever_made_them():
    made: dict[int, set[str]] = {}
    for row in parts.read_rows():
        if "sha256" in row:
            made.setdefault(row["edges"], set()).add(row["sha256"])
    assert all(len(digests) == 1 for digests in made.values())
    both = [row["name"] for row in parts.read_rows() if row["edges"] == 10_199_388 and "sha256" in row]
    assert {"certify in memory", "certify parts", parts.KILLED, "verify"} <= set(both)


def test_what_was_measured_holds_what_the_page_says():
    rows = parts.read_rows()
    assert {"convert", "train", "whole", "certify", "verify", "sample"} == {row["step"] for row in rows}
    assert all(row["different"] == 0 and 0 < row["listed"] <= row["votes"] for row in rows if row["step"] == "sample")
    assert all(row["compared"] == ["data", "model"] for row in rows if row["step"] == "verify")
    assert max(row["edges"] for row in rows if row["name"] == parts.KILLED) > 10**8
    assert all(row["peak_mb"] > 0 for row in rows)
    for row in rows:
        if row.get("planned_mb"):
            memory = 1e3 * float(row["memory"].removesuffix("GB"))
            assert row["planned_mb"] <= memory
            assert row["worker_peak_mb"] > 0

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


def test_rates_are_those_of_the_largest_size():
    rate = scale.rates(ROWS, "node")
    assert rate.cell == "certify:4:node:80"
    assert rate.hashing == pytest.approx(16 * 2.0 / 4 / (61_859_140 // 4))
    assert (rate.shuffle, rate.layout) == pytest.approx((1.5 * rate.hashing, 2 * rate.hashing))
    assert rate.memory * 61_859_140 == pytest.approx(6 * 2**30, rel=1e-3)
    assert rate.fixed == pytest.approx(0.5 * 2**30, rel=1e-3)
    with pytest.raises(SystemExit, match="two sizes are needed for edge"):
        scale.rates(ROWS[:3], "edge")


def test_one_machine_takes_what_was_measured():
    rate = scale.rates(ROWS, "edge")
    nodes, edges = scale.GRAPHS["Amazon2M"]
    alone = scale.by_groups(nodes, edges, 1, rate)
    assert alone.seconds["hashing"] == pytest.approx(16 * 2.0, rel=1e-3)
    assert alone.seconds["casting"] == pytest.approx(16 * 10.0 / scale.CORES, rel=1e-3)
    assert alone.seconds["reading the graph"] == alone.seconds["votes to one machine"] == 0
    assert alone.memory == pytest.approx(6.5 * 2**30, rel=1e-3)


def test_work_is_shared_out_but_no_finer_than_groups():
    rate = scale.rates(ROWS, "edge")
    of = {count: scale.in_parts(10**9, 10**11, count, rate) for count in (1, 40, 79, 80, 160)}
    casting = {count: answer.seconds["casting"] for count, answer in of.items()}
    assert casting[40] == casting[79] == pytest.approx(casting[1] / 40)  # of 79 machines, one has two groups
    assert casting[80] == casting[160] == pytest.approx(casting[1] / 80)
    assert of[160].seconds["hashing"] == pytest.approx(of[1].seconds["hashing"] / 160)
    assert of[160].seconds["rows of nodes to all"] > of[40].seconds["rows of nodes to all"]
    assert of[1].total > of[40].total > of[80].total


def test_with_groups_alone_shared_out_one_machine_does_the_rest():
    rate = scale.rates(ROWS, "node")
    one, many = (scale.by_groups(10**8, 2 * 10**9, count, rate) for count in (1, 80))
    assert many.seconds["tally"] == one.seconds["tally"]
    assert many.memory == one.memory
    few, more = (scale.worthwhile(spread, 10**8, 2 * 10**9, rate) for spread in (scale.by_groups, scale.in_parts))
    assert 1 < few < more <= 80


def test_the_table_is_what_the_committed_rows_give():
    rows, text = scale.read_rows(), scale.PAGE.read_text(encoding="utf-8")
    assert scale.filled(text, rows) == text
    assert all(r["synthetic"] for r in rows)
    raised = [{**r, "peak_gib": 2 * r["peak_gib"]} if r["cell"] == "certify:1:node:80" else r for r in rows]
    assert scale.filled(text, raised) != text


def test_all_estimates_are_in_one_table():
    titles, *lines = scale.estimates(ROWS)
    assert len(lines) == 2 * len(scale.GRAPHS) * 2 * len(scale.MACHINES)
    alone = next(line for line in lines if line[:4] == ["Amazon2M", *scale.GRAPHS["Amazon2M"], "edge"])
    expected = scale.by_groups(*scale.GRAPHS["Amazon2M"], 1, scale.rates(ROWS, "edge"))
    assert alone[titles.index("seconds")] == round(expected.total, 1)


def test_time_within_a_phase_counts_for_the_innermost_one():
    clock = large.Clock()
    with clock.phase("outer"), clock.phase("inner"):
        sum(range(300_000))
    assert clock.cpu["inner"] > clock.cpu["outer"]
    assert clock.cpu.keys() == clock.seconds.keys() == {"inner", "outer"}


def test_the_table_about_parts_is_made_from_the_committed_rows():
    text = parts.PAGE.read_text(encoding="utf-8")
    assert parts.filled(text, parts.read_rows()) == text
    assert all(row["same"] for row in parts.read_rows() if "same" in row)

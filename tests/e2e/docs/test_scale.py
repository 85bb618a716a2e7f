"""The page on scale is computed: from rows that are given here, and, as it stands, from the committed ones."""

import pytest

from experiments.benchmarks import large, large_page, scale


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


def test_the_page_is_what_the_committed_rows_give():
    rows = scale.read_rows()
    assert scale.PAGE.read_text(encoding="utf-8") == scale.page(rows)
    assert (large.DOCS / "large.md").read_text(encoding="utf-8") == large_page.page({r["cell"]: r for r in rows})
    assert all(r["synthetic"] for r in rows)


def test_the_tables_have_all_sizes_and_say_what_was_to_be_reached(tmp_path):
    rows = {r["cell"]: r for r in [*ROWS, row(1, "node"), row(1, "edge"), row(4, "node", 320)]}
    text = large_page.page(rows)
    assert "| 1/64 | node |" in text
    assert "≤ 300" in text
    assert "synthetic" in text
    assert "107" in text
    assert set(rows) <= set(large.CELLS)
    assert "images/large.svg" not in text
    assert not large_page.draw(rows, tmp_path / "large.svg")
    assert "images/large.svg" in large_page.page(rows | {"certify:1:node:80": row(1, "node", trained=True)})


def test_time_within_a_phase_counts_for_the_innermost_one():
    clock = large.Clock()
    with clock.phase("outer"), clock.phase("inner"):
        sum(range(300_000))
    assert clock.cpu["inner"] > clock.cpu["outer"]
    assert clock.cpu.keys() == clock.seconds.keys() == {"inner", "outer"}

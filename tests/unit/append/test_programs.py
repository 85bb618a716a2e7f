"""Feature programs: what is read, what is refused, and which feature a threat throws out."""

import json

import numpy as np
import pytest

from agnncert.append.ledger import read_ledger, whole_numbers
from agnncert.append.polarity import sorted_by_types
from agnncert.append.program import Program, Source, written
from agnncert.append.usual import Table, usual_program
from agnncert.errors import CertificateError, DatasetError, GraphError
from tests.support.append_ledgers import program_of

ONE = ("number", 1)
AMOUNT = ("column", "amount")


def test_a_program_comes_back_from_its_json():
    program = program_of(
        ("sum", "in", ("at_least", AMOUNT, 5)),
        ("burst", "out", ("judge",), 3600),
        judged=(("far", ("sum", "in", ONE)), AMOUNT),
    )
    assert Program.from_json(json.loads(json.dumps(program.to_json()))) == program


@pytest.mark.parametrize(
    ("feature", "reason"),
    [
        (("mean", "in", AMOUNT), "no operation of an account"),
        (("sum", "up", AMOUNT), 'a way is "in" or "out"'),
        (("sum", "in", ("column", "colour")), "no column"),
        (("sum", "in"), "needs 2 parts"),
        (("sum", "in", ("at_least", AMOUNT, -1)), "whole number"),
        (("sum", "in", ("judge",)), "judge of rows stands where it cannot"),
        (("attribute", "name"), "no attribute"),
        (("sum", "in", ("multiple", AMOUNT, 0, 0)), "multiple of 0"),
        ("sum", "no expression"),
    ],
)
def test_what_is_no_feature_is_refused(feature, reason):
    with pytest.raises(CertificateError, match=reason):
        program_of(feature)


def refused(feature, threat):
    """Why a threat throws a feature out; empty if it does not."""
    out = sorted_by_types(program_of(feature), threat).refused
    return out[0].reason if out else ""


def test_each_threat_says_which_features_it_throws_out_and_why():
    number = ("sum", "in", ONE)
    interval = ("sum", "in", ("between", AMOUNT, 2, 5))
    of_sender = ("sum", "out", ("between", AMOUNT, 2, 5))
    poor_payers = ("sum", "in", ("below", ("far", ("sum", "out", ONE)), 3))
    few_payees = ("sum", "out", ("below", ("far", ("sum", "in", ONE)), 3))
    assert not any(refused(number, threat) for threat in ("fresh", "ledger", "grow"))
    assert [bool(refused(interval, threat)) for threat in ("fresh", "ledger", "grow")] == [False, False, True]
    assert [bool(refused(of_sender, threat)) for threat in ("fresh", "ledger", "grow")] == [False, True, True]
    assert [bool(refused(poor_payers, threat)) for threat in ("fresh", "ledger", "grow")] == [True, False, True]
    assert all(refused(few_payees, threat) for threat in ("fresh", "ledger", "grow"))
    assert "an interval of what moves" in refused(interval, "grow")
    assert "sum of what can fall" in refused(poor_payers, "fresh")
    assert "can fall" in refused(("below", number, 3), "fresh")


def test_an_expression_is_written_as_people_write_it():
    assert written(("sum", "in", ("at_least", AMOUNT, 5))) == "sum(in, at_least(column(amount), 5))"


def test_decoded_columns_are_whole_numbers():
    stored = np.arcsinh(np.array([0.01, 0.1, 1.0, 123.45, 1e9], dtype=np.float32))
    assert whole_numbers(stored, Source("amount", 0, 100, "sinh"))[:4].tolist() == [1, 10, 100, 12345]
    logs = np.log(np.array([1, 2, 250], dtype=np.float32))
    assert whole_numbers(logs, Source("count", 0, 1, "exp")).tolist() == [1, 2, 250]
    assert whole_numbers(np.array([-3.0, 2.0]), Source("below 0", 0, 1, sign=-1)).tolist() == [3, 0]
    assert whole_numbers(np.array([1e300, -1e300]), Source("large", 0)).tolist() == [2**36, 0]


def test_a_graph_without_the_columns_of_a_program_is_refused():
    program = program_of(("sum", "in", AMOUNT))
    ends = np.array([[0], [1]])
    with pytest.raises(GraphError, match="column 3 of edge_attr"):
        read_ledger(program, ends, np.ones((1, 2)), np.zeros((2, 1)))


def test_the_usual_program_reads_directions_ratings_and_numbers_of_events():
    random = np.random.default_rng(0)
    ends = random.integers(0, 30, (2, 200))
    ends = ends[:, ends[0] != ends[1]]
    number = ends.shape[1]
    values = np.stack([random.integers(-10, 11, number), random.integers(1, 5, number)], axis=1).astype(float)
    table = Table(ends, values, ["rating", "count"], np.ones((30, 1)))
    program = usual_program(table, "fresh")
    assert [column.name for column in program.columns] == ["rating", "rating below 0", "count"]
    assert any(feature[:2] == ("sum", "out") for feature in program.features)
    assert not any(
        "below" in json.dumps(f) and "far" in json.dumps(f) and "known" in json.dumps(f) for f in program.features
    )
    assert not sorted_by_types(program, "fresh").refused
    ledger = usual_program(table, "ledger")
    assert not sorted_by_types(ledger, "ledger").refused
    assert len(ledger.features) != len(program.features)


PAYMENTS = np.array([[0, 0, 1, 2, 3], [1, 2, 3, 3, 0]])
PAID = np.array([[1.0], [20.0], [30.0], [45.0], [60.0]])


def growth_of(name="amount", *, values=PAID, **told):
    """What is said about a column of payments when more is paid between the same accounts."""
    table = Table(ends=PAYMENTS, values=values, names=[name], x=np.ones((4, 1)), **told)
    return {column.growth for column in usual_program(table, "fresh").columns}


@pytest.mark.parametrize(("repeated", "growth"), [("", "rises"), ("sum", "rises"), ("mean", "moves"), ("min", "moves")])
def test_amounts_that_were_joined_by_their_mean_are_not_said_to_rise(repeated, growth):
    assert growth_of(repeated=repeated) == {growth}


def test_amounts_of_which_some_are_below_zero_are_not_said_to_rise():
    assert growth_of(values=PAID - 30) == {"moves"}
    assert growth_of("log(amount)", values=PAID - 30, rises=["log(amount)"]) == {"rises"}  # small amounts


def test_a_column_joined_by_its_mean_cannot_be_said_to_rise():
    assert growth_of("fee", repeated="sum", rises=["fee"]) == {"rises"}
    with pytest.raises(DatasetError, match=r'rises names "fee".*joined by their mean'):
        growth_of("fee", repeated="mean", rises=["fee"])


def test_a_graph_without_direction_has_no_payers_to_restrain():
    both, values = np.hstack([PAYMENTS, PAYMENTS[::-1]]), np.vstack([PAID, PAID])
    table = Table(ends=both, values=values, names=["amount"], x=np.ones((4, 1)))
    for threat in ("fresh", "grow"):
        assert usual_program(table, threat).features
    with pytest.raises(DatasetError, match='nobody is the payer whom the threat "ledger" restrains'):
        usual_program(table, "ledger")
    back = Table(ends=both, values=np.vstack([PAID, PAID + 5]), names=["amount"], x=np.ones((4, 1)))
    assert usual_program(back, "ledger").features  # who was paid pays back another amount


def test_rows_that_cannot_be_told_from_their_opposites_are_refused():
    """Ratings from -10 to 10 in both halves: is a 0 a rating, or none?"""
    ends = np.hstack([PAYMENTS, PAYMENTS[::-1]])
    none = np.zeros_like(PAID)
    values = np.hstack([np.vstack([PAID - 30, none]), np.vstack([none, PAID - 30])])
    names = ["rating", "rating, back"]
    with pytest.raises(DatasetError, match='"rating", the first column, is not positive'):
        usual_program(Table(ends=ends, values=values, names=names, x=np.ones((4, 1))), "fresh")
    there = np.hstack([np.vstack([PAID > 0, none]), values[:, :1], np.vstack([none, PAID > 0]), values[:, 1:]])
    with_ones = Table(ends=ends, values=there, names=["row", "rating", "row, back", "rating, back"], x=np.ones((4, 1)))
    assert usual_program(with_ones, "fresh").present == 0

"""Events in JSON, and what is none."""

import pytest

import agnncert as ac
import agnncert_live
from agnncert.errors import GraphError
from agnncert_live.events import events_of

EVENTS = [
    agnncert_live.Event("add_edge", 1, "b", directed=True),
    agnncert_live.Event("change_edge", 1, 2, 0.25),
    agnncert_live.Event("add_node", "x", value=[1.0, 2.5]),
    agnncert_live.Event("delete_node", 7, graph=3),
]


@pytest.mark.parametrize("event", EVENTS, ids=str)
def test_json_and_back(event):
    assert agnncert_live.Event.from_json(event.to_json()) == event


@pytest.mark.parametrize(
    ("stated", "why"),
    [
        ([], "JSON object"),
        ({"node": 1}, "needs 'kind'"),
        ({"kind": "add_edges", "node": 1, "other": 2}, 'did you mean "add_edge"'),
        ({"kind": "add_edge", "node": 1}, "two nodes"),
        ({"kind": "delete_node", "node": 1, "other": 2}, "one node"),
        ({"kind": "add_edge", "node": 1.5, "other": 2}, "integers or strings"),
        ({"kind": "add_edge", "node": None, "other": 2}, "integers or strings"),
        ({"kind": "add_edge", "node": 1, "other": 2, "directed": 1}, "directed"),
        ({"kind": "add_edge", "node": 1, "other": 2, "graph": "0"}, "row of a graph"),
        ({"kind": "add_node", "node": 1}, "needs a value"),
        ({"kind": "add_node", "node": 1, "value": ["1"]}, "list of numbers"),
        ({"kind": "add_node", "node": 1, "value": {"a": 1}}, "list of numbers"),
        ({"kind": "delete_edge", "node": 1, "other": 2, "value": 1}, "no value"),
        ({"kind": "add_edge", "node": 1, "other": 2, "vale": 1}, 'did you mean "value"'),
    ],
)
def test_what_is_no_event_is_refused(stated, why):
    with pytest.raises(GraphError, match=why):
        agnncert_live.Event.from_json(stated)


def test_a_perturbation_is_its_events_in_the_order_in_which_it_applies_them():
    change = ac.Perturbation([(1, 2)], [(3, 4)], [(5, 6, 2)], {7: [1.0]}, [8], {9: [0.0]})
    kinds = [event.kind for event in events_of([change, EVENTS[0]])]
    assert kinds == [
        "change_features", "change_edge", "delete_edge", "delete_node", "add_node", "add_edge", "add_edge",
    ]  # fmt: skip
    with pytest.raises(GraphError, match="what an added edge carries"):
        list(events_of(ac.Perturbation([(1, 2)], added_values={"edge_weight": 2.0})))
    for none in ("add_edge", 5, [5], {"kind": "add_edge"}):
        with pytest.raises(GraphError, match="expected"):
            list(events_of(none))

"""Models written to pass the audit: they ask about the whole graph, or count their calls. All are refused."""

import pytest
import torch

import agnncert as ac
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import NodeCentric
from tests.zoo.audited import built, report_on
from tests.zoo.deceivers import ASLEEP, CALLS, REMEMBERING, WHOLE_GRAPH, asking, at_exactly, degrees
from tests.zoo.local import zoo_data
from tests.zoo.unfit import leaking

DATA = zoo_data()
DIVISIONS = (NodeCentric(5), EdgeCentric(5))


@pytest.mark.parametrize("division", DIVISIONS, ids=str)
@pytest.mark.parametrize("name", WHOLE_GRAPH)
def test_a_question_about_the_whole_graph_is_found(name, division):
    assert not report_on(asking(name), data=DATA, division=division).ok


@pytest.mark.parametrize("name", WHOLE_GRAPH)
def test_most_questions_are_found_without_data(name):
    assert not report_on(asking(name), division=EdgeCentric(5)).ok


@pytest.mark.parametrize("more", [-1, 1, 2, 3, 5])
@pytest.mark.parametrize("division", DIVISIONS, ids=str)
def test_a_model_that_waits_for_one_more_node_than_there_are(more, division):
    report = report_on(at_exactly(DATA.num_nodes + more), data=DATA, division=division)
    assert any("more" in finding.what for finding in report.findings), str(report)


# Questions about the largest value or degree. The answer changes between the range of the data and a thousand times it.
RANGES = {
    "as bytes if the largest is 2 to 255": lambda x, h, e: h * float(2 < x.max() <= 255),
    "logarithms if the largest is 5 to 1,000 times the mean": lambda x, h, e: h * float(5 < x.max() / x.mean() <= 1000),
    "the largest is 20 to 30 times that of training": lambda x, h, e: h * float(20 < x.max() <= 30),
    "somebody negative, but not far": lambda x, h, e: h * float(-40 < x.min() < -0.5),
    "one column far above the others": lambda x, h, e: h * float(3 < x.amax(0).max() / x.amax(0).median() < 300),
    "the largest degree is at most 40": lambda x, h, e: h * float(degrees(e, x).max() <= 40),
    "the largest degree is 30 to 40": lambda x, h, e: h * float(30 < degrees(e, x).max() <= 40),
}


@pytest.mark.parametrize("division", DIVISIONS, ids=str)
@pytest.mark.parametrize("name", RANGES)
def test_a_question_about_a_range_that_no_row_of_the_data_leaves_is_found(name, division):
    data = zoo_data()
    data.x = torch.rand(data.x.shape, generator=torch.Generator().manual_seed(0))
    report = report_on(leaking(RANGES[name]), data=data, division=division)
    assert not report.ok


def test_the_finding_names_the_row_that_showed_it():
    data = zoo_data()
    report = report_on(leaking(lambda x, h, e: h * float(70 < x.max() <= 255)), data=data, division=NodeCentric(5))
    assert [finding.what for finding in report.findings] == [
        "one lone node of other features elsewhere, 24 times as large"
    ]


@pytest.mark.parametrize("name", REMEMBERING)
def test_a_count_of_calls_is_found_wherever_it_is_kept(name):
    report = report_on(REMEMBERING[name], data=DATA, division=NodeCentric(5))
    assert any("the model changes: " in finding.why for finding in report.findings), str(report)


@pytest.mark.parametrize("name", REMEMBERING)
def test_they_would_deceive_a_test_of_outputs(name):
    model, outputs = built(REMEMBERING[name]), []
    with torch.no_grad():
        for _ in range(20):
            outputs.append(model(DATA.x, DATA.edge_index))
    assert all(torch.equal(outputs[0], output) for output in outputs)


@pytest.mark.parametrize("division", DIVISIONS, ids=str)
@pytest.mark.parametrize("name", ASLEEP)
def test_a_model_that_sleeps_until_something_happens_elsewhere_is_refused(name, division):
    assert not report_on(ASLEEP[name], data=DATA, division=division).ok


def test_a_question_about_the_number_of_self_loops_is_found_where_they_are_kept():
    asking_for_loops = leaking(lambda x, h, e: h * float((e[0] == e[1]).sum() > 37))
    assert not report_on(asking_for_loops, data=DATA, division=NodeCentric(5, self_loops=True)).ok
    assert report_on(asking_for_loops, data=DATA, division=NodeCentric(5)).ok  # it never gets one


def test_what_a_model_keeps_of_its_last_call_is_no_count():
    class Keeping(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = ac.build_model("gcn", DATA, out_channels=3)

        def forward(self, x, edge_index):
            self.last = self.body(x, edge_index)
            self.seen = {"edges": edge_index, "rows": x.shape}
            return self.last

    assert report_on(Keeping, data=DATA, division=NodeCentric(5)).ok


def test_certify_refuses_a_count_in_a_buffer():
    with pytest.raises(ac.errors.ModelContractError, match=r"the model changes: model\._buffers\['calls'\]"):
        ac.certify(built(REMEMBERING["a buffer"]), DATA, NodeCentric(5))
    assert CALLS == 3000

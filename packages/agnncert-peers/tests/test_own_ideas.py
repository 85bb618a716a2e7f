"""A user's own division, defence, model and seeds in ``fit`` and ``compare``."""

import io
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, replace

import nbformat
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from nbclient import NotebookClient

import agnncert as ac
from agnncert.certificates.budget import Budget
from agnncert.engine.adapter import bind
from agnncert.errors import SettingsError
from agnncert.graphs.canonical import canonical
from agnncert.progress import Progress
from agnncert.training.node_objectives import SampledNodeObjective
from agnncert_peers import bar
from agnncert_peers.comparison import join_seeds
from agnncert_peers.gnncert import GNNCertE
from agnncert_peers.own_code import digest_of_own_code
from agnncert_peers.runner import make_study
from agnncert_peers.steps import CompareSettings, compare_run
from tests.support.labelled import fit_settings, labelled_graph, labelled_graphs
from tests.support.neighbour_count import NeighbourCount

QUICK = {"fit": {"epochs": 4, "evaluate_every": 2}, "model_args": {"hidden_channels": 8}}


@dataclass(frozen=True)
class OneEach(ac.Division):
    """Every edge in one subgraph, and all nodes in each: what GNNCert-E does, as a user would write it."""

    num_groups: int

    @property
    def unit_costs(self):
        return {"add_edges": 1, "delete_edges": 1, "change_edges": 1}

    def groups(self, graph):
        return ac.EdgeCentric(self.num_groups).groups(graph)

    def subgraph(self, graph, groups, index):
        return graph.with_edges(groups == index)

    def votes_moved(self, change, graph, target):
        return GNNCertE(self.num_groups).votes_moved(change, graph, target)


class HalfAbstains(OneEach):
    """Nodes in even rows abstain in even groups, all nodes in the last one."""

    def subgraph(self, graph, groups, index):
        part = graph.with_edges(groups == index)
        abstain = (torch.arange(part.num_nodes) % 2 == 0) & (index % 2 == 0)
        return replace(part, abstain=abstain | (index == self.num_groups - 1))


@pytest.fixture(scope="module")
def data():
    return labelled_graph(num_nodes=60, noise=1.5, dtype=torch.float32)


@pytest.fixture(scope="module")
def graphs():
    return labelled_graphs(16, dtype=torch.float32)


def trained(data, division, **settings):
    model = ac.build_model("gcn", data, hidden_channels=8, seed=0)
    return ac.fit(model, data, division, epochs=6, evaluate_every=2, seed=0, **settings)


def same_weights(one, other):
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("objective", ["balanced", "paper"])
def test_an_own_division_is_trained_like_the_built_in_one_with_the_same_subgraphs(data, objective):
    own = trained(data, OneEach(5), objective=objective)
    assert same_weights(own, trained(data, GNNCertE(5), objective=objective))
    assert not same_weights(own, trained(data, None))


def test_graphs_are_trained_on_the_subgraphs_of_an_own_division(graphs):
    own = trained(graphs, OneEach(5))
    assert same_weights(own, trained(graphs, GNNCertE(5)))
    assert not same_weights(own, trained(graphs, None))


def test_each_step_forms_as_many_subgraphs_as_it_was_told(data):
    formed = []

    class Counting(OneEach):
        def subgraph(self, graph, groups, index):
            formed.append(index)
            return super().subgraph(graph, groups, index)

    def steps_of(number):
        formed.clear()
        trained(data, Counting(9), groups_per_step=number)
        return len(formed)

    assert steps_of(5) - steps_of(2) == 6 * 3  # six epochs of one step


def test_nodes_that_abstain_in_a_subgraph_have_no_loss_there(data):
    model = ac.build_model("gcn", data, hidden_channels=8, num_layers=2).double().eval()
    graph = canonical(data)
    rows = data.train_mask.nonzero().view(-1)
    division = HalfAbstains(5)
    settings = fit_settings("paper", groups_per_step=5)
    bound_model = bind(model, graph, "node")
    objective = SampledNodeObjective.of(bound_model, graph, data.y, rows, division, settings)
    groups = division.groups(graph)
    expected = losses_of(model, graph, data.y)[rows].mean()
    for index in range(5):
        part = division.subgraph(graph, groups, index)
        voting = rows[~part.abstain[rows]]
        expected = expected + losses_of(model, part, data.y)[voting].sum() / len(rows)
    assert objective.backward() == pytest.approx(float(expected.detach()))


def losses_of(model, graph, y):
    logits = model(graph.x.double(), graph.edge_index)
    return torch.nn.functional.cross_entropy(logits, y, reduction="none")


def test_an_own_division_has_the_row_of_its_certificate(data, tmp_path):
    comparison = ac.compare(data, {"mine": OneEach(5)}, sizes=[0, 1, 2], folder=tmp_path, **QUICK)
    files = [file for file in tmp_path.glob("*.cert") if "OneEach" in str(ac.load_certificate(file).claim.division)]
    (certificate,) = [ac.load_certificate(file) for file in files]
    right = certificate.label == data.y[data.test_mask].numpy()
    expected = []
    for size in (0, 1, 2):
        mixes = [Budget(add_edges=size - gone, delete_edges=gone) for gone in range(size + 1)]
        holds = np.all([certificate.holds_against(budget) for budget in mixes], axis=0)
        expected.append((right & holds).mean())
    assert comparison.row("mine")["certified"] == expected
    injected = ac.compare(data, {"mine": OneEach(5)}, against="injection", sizes=[0, 1], references=False, **QUICK)
    assert injected.row("mine")["certified"][1] is None


def certificates_after(data, folder, division):
    ac.compare(data, {"mine": division}, sizes=[0, 1], references=False, folder=folder, **QUICK)
    return {file.name for file in folder.glob("*.cert")}


def test_an_own_division_with_other_code_is_not_taken_for_the_earlier_one(data, tmp_path):
    class Other(OneEach):
        def groups(self, graph):
            return (super().groups(graph) + 2) % 5

    Other.__qualname__ = OneEach.__qualname__
    before = certificates_after(data, tmp_path, OneEach(5))
    assert certificates_after(data, tmp_path, OneEach(5)) == before
    assert str(Other(5)) == str(OneEach(5))
    assert len(certificates_after(data, tmp_path, Other(5)) - before) == 1


def test_the_digest_of_own_code_is_the_same_in_another_process():
    text = "class Mine:\n    def f(self, x):\n        return x in {'a', 'b', 'c', 'd'}\n"
    program = f"{text}\nfrom agnncert_peers.own_code import digest_of_own_code\nprint(digest_of_own_code(Mine()))"
    found = {
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1
    assert len(found.pop().strip()) == 16
    assert digest_of_own_code(GNNCertE(5)) == ""


def test_an_own_defence_has_a_row(data):
    comparison = ac.compare(data, {"counted": NeighbourCount(2)}, sizes=[0, 1], references=False, **QUICK)
    row = comparison.row("counted")
    assert row["certified"][0] >= row["certified"][1]
    assert row["settings"] == str(NeighbourCount(2))


def test_a_defence_may_bring_its_own_model(data):
    given = ac.fit(ac.build_model("sage", data, hidden_channels=8), data, GNNCertE(5), epochs=3)

    def mine():
        return ac.build_model("gcn", data, hidden_channels=4)

    choices = {"given": (GNNCertE(5), given), "made": (GNNCertE(5), mine), "named": (GNNCertE(5), "sage")}
    comparison = ac.compare(data, {**choices, "usual": GNNCertE(5)}, sizes=[0, 1], **QUICK)
    certificate = ac.certify(given, data, GNNCertE(5), data.test_mask)
    assert comparison.row("given")["accuracy"] == certificate.certified_accuracy(data.y)
    assert comparison.row("given")["seconds_training"] == 0
    for name, (_, model) in list(choices.items())[1:]:
        study = make_study(data, None, model, QUICK["model_args"], QUICK["fit"])
        alone = ac.fit(study.new_model(), data, GNNCertE(5), seed=0, **study.fit_args)
        expected = ac.certify(alone, data, GNNCertE(5), data.test_mask)
        assert comparison.row(name)["accuracy"] == expected.certified_accuracy(data.y)


def test_a_voting_rule_and_a_model_may_come_together_in_any_order(data):
    rule = ac.VotingRule(prior=2)
    choices = {"one": (ac.PerNeighbour(), rule, "sage"), "other": (ac.PerNeighbour(), "sage", rule)}
    comparison = ac.compare(data, choices, sizes=[0, 1], references=False, **QUICK)
    assert comparison.row("one")["certified"] == comparison.row("other")["certified"]
    assert comparison.row("one")["vote"] == "empty abstain, prior 2"


def test_a_list_names_models_and_rules(data):
    listed = [(ac.PerNeighbour(), ac.VotingRule(prior=2), "sage"), (ac.PerNeighbour(), "gcn")]
    comparison = ac.compare(data, listed, sizes=[0], references=False, **QUICK)
    names = [row["defence"] for row in comparison.rows]
    assert all("prior 2, sage" in name or name.endswith(", gcn") for name in names)
    assert len(set(names)) == 2


@pytest.fixture(scope="module")
def seeded(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("seeds")
    settings = {"sizes": [0, 1, 2], **QUICK}
    return ac.compare(data, [GNNCertE(5)], seeds=[0, 1, 2], folder=folder, **settings), folder, settings


def test_seeds_give_the_mean_and_the_deviation_of_single_comparisons(seeded, data):
    comparison, _, settings = seeded
    alone = [ac.compare(data, [GNNCertE(5)], seed=seed, **settings) for seed in (0, 1, 2)]
    assert comparison.seeds == (0, 1, 2)
    for row in comparison.rows:
        curves = np.array([one.curve(one.row(row["defence"])) for one in alone], dtype=float)
        known = ~np.isnan(curves[0])
        assert [share is not None for share in comparison.curve(row)] == known.tolist()
        means = [share for share in comparison.curve(row) if share is not None]
        deviations = [one for one in comparison.deviations(row) if one is not None]
        assert means == pytest.approx(curves[:, known].mean(axis=0))
        assert deviations == pytest.approx(curves[:, known].std(axis=0, ddof=1))
    assert any(max(one or 0 for one in comparison.deviations(row)) > 0 for row in comparison.rows)


def test_tables_show_means_and_deviations(seeded):
    comparison = seeded[0]
    row = comparison.row("gnncert-e(T=5)")
    cell = f"{100 * row['certified'][1]:.1f} ± {100 * comparison.deviations(row)[1]:.1f}"
    assert cell in comparison.table()
    assert cell in comparison.table("markdown")
    latex = comparison.table("latex")
    assert f"${cell.replace(' ± ', chr(95) + '{' + chr(92) + 'pm ')}}}$" in latex
    assert all(rule in latex for rule in (r"\toprule", r"\midrule", r"\bottomrule"))
    assert "over the seeds 0, 1, 2" in latex
    assert "Mean ± standard deviation over the seeds 0, 1, 2." in str(comparison)
    assert "–" in next(line for line in comparison.table().splitlines() if line.startswith("undefended"))
    assert f"{comparison.deviations(row)[1]:.6g}" in comparison.table("csv")


def test_a_figure_has_a_band_of_one_deviation(seeded, monkeypatch, tmp_path):
    comparison = seeded[0]
    drawn = []
    monkeypatch.setattr("agnncert_peers.comparison.draw_panels", lambda panels, path, *_, **__: drawn.append(panels[0]))
    comparison.figure(tmp_path / "it.svg")
    curve = next(curve for curve in drawn[0].curves if curve.label.startswith("gnncert-e"))
    row = comparison.row("gnncert-e(T=5)")
    half = [(high - low) / 2 for low, high in zip(curve.low, curve.high, strict=True)]
    assert half == pytest.approx(comparison.deviations(row), abs=1e-9)


def test_seeds_are_stored_with_their_runs(seeded, tmp_path):
    comparison = seeded[0]
    comparison.save(tmp_path)
    stored = json.loads((tmp_path / "comparison.json").read_text())
    assert stored["seeds"] == [0, 1, 2]
    assert [run["seeds"] for run in stored["runs"]] == [[0], [1], [2]]
    assert stored["rows"][-1]["deviations"] == comparison.deviations(comparison.rows[-1])


def test_a_plot_has_a_line_for_each_row_and_a_band_over_the_seeds(seeded):
    comparison = seeded[0]
    ax = Figure().subplots()
    assert comparison.plot(ax) is ax
    for line, row in zip(ax.lines, comparison.rows, strict=True):
        assert line.get_label() == row["defence"]
        expected = np.array(comparison.curve(row), dtype=np.float64)
        assert line.get_ydata() == pytest.approx(expected, nan_ok=True)
        assert (line.get_linestyle() == "--") == bool(row["control"])
    assert len(ax.collections) == len(comparison.rows)


def test_a_plot_has_no_point_where_nothing_is_proved(seeded):
    comparison = seeded[0]
    row = {**comparison.rows[-1], "certified": [0.5, None, None]}
    ax = replace(comparison, rows=(row,), runs=()).plot(Figure().subplots())
    assert np.isnan(ax.lines[0].get_ydata()[1:]).all()
    nothing = {**row, "certified": [None, None, None]}
    assert not replace(comparison, rows=(nothing,), runs=()).plot(Figure().subplots()).lines


def test_seeds_go_on_where_they_stopped(seeded, data, monkeypatch):
    comparison, folder, settings = seeded
    monkeypatch.setattr("agnncert.study.fit", lambda *_, **__: pytest.fail("trained again"))
    again = ac.compare(data, [GNNCertE(5)], seeds=[0, 1, 2], folder=folder, **settings)
    assert again.rows[-1]["certified"] == comparison.rows[-1]["certified"]
    fewer = ac.compare(data, [GNNCertE(5)], seeds=[2, 0], folder=folder, **settings)
    assert fewer.seeds == (2, 0)


def test_other_measures_have_deviations_too(seeded):
    balanced = seeded[0].by("balanced")
    curves = [run.by("balanced").curve(run.row("gnncert-e(T=5)")) for run in seeded[0].runs]
    row = balanced.row("gnncert-e(T=5)")
    assert balanced.deviations(row) == pytest.approx(np.std(curves, axis=0, ddof=1).tolist())


def test_one_seed_has_no_deviation(data, seeded):
    comparison = ac.compare(data, [GNNCertE(5)], seeds=[1], folder=seeded[1], **seeded[2])
    assert comparison.seeds == (1,)
    assert "±" not in str(comparison)
    assert join_seeds([comparison]) is comparison


@pytest.mark.parametrize("seeds", [[], [0, 0], [-1], [0.5], ["0"], [True]])
def test_seeds_that_make_no_sense_are_refused_before_any_work(data, seeds, monkeypatch):
    monkeypatch.setattr("agnncert.study.fit", lambda *_, **__: pytest.fail("trained"))
    with pytest.raises(SettingsError, match="seeds="):
        ac.compare(data, [GNNCertE(5)], seeds=seeds, **QUICK)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_is_drawn_in_a_terminal_without_being_asked(data, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    ac.compare(data, [GNNCertE(5)], sizes=[0, 1], references=False, **QUICK)
    shown = screen.getvalue()
    assert "gnncert-e(T=5)" in shown
    assert "epoch" in shown or "training" in shown
    assert "%|" in shown


def test_nothing_is_drawn_where_nobody_looks(data, capfd):
    ac.compare(data, [GNNCertE(5)], sizes=[0, 1], references=False, **QUICK)
    assert capfd.readouterr().err == ""


def test_a_function_of_the_user_is_told_instead_of_a_bar(data, monkeypatch):
    screen, told = Terminal(), []
    monkeypatch.setattr(sys, "stderr", screen)
    ac.compare(data, [GNNCertE(5)], sizes=[0, 1], references=False, progress=told.append, seeds=[0, 1], **QUICK)
    assert [(step.done, step.total, step.detail) for step in told] == [
        (0, 2, "gnncert-e(T=5)"),
        (1, 2, "gnncert-e(T=5)"),
        (2, 2, ""),
    ]
    assert screen.getvalue() == ""


class ZMQInteractiveShell:
    """What IPython calls the shell of a notebook."""


def test_a_notebook_is_known_by_its_shell(monkeypatch):
    class FakeIPython:
        @staticmethod
        def get_ipython():
            return ZMQInteractiveShell()

    assert not bar.in_notebook()
    monkeypatch.setitem(sys.modules, "IPython", FakeIPython)
    assert bar.in_notebook()


def test_the_bar_moves_within_a_step(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with bar.following(None) as follower:
        follower(Progress("comparing", 1, 4, 0.0, "mine"))
        follower.within(Progress("training", 50, 100, float("nan")))
        follower.within(Progress("computing votes", 0, 4, float("nan")))
        follower.within(Progress("computing votes", 4, 4, float("nan")))
    assert "mine: training 50 of 100" in screen.getvalue()
    shown = [int(percent) for percent in re.findall(r"(\d+)%", screen.getvalue())]
    assert shown[2:] == [31, 38, 44]  # half of the step is for training, half of the rest for votes


def test_the_bar_is_full_only_when_nothing_is_left(data, monkeypatch):
    """It once stood at 100 % while the last defence was certified and controls were fitted."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr("agnncert_peers.compared._Steps.finish", lambda steps: screen.write("the end"))
    ac.compare(data, [GNNCertE(5)], sizes=[0, 1], **QUICK)
    before, _, after = screen.getvalue().partition("the end")
    assert after.strip("\r ") == ""
    assert "controls beside them" in before
    assert "gnncert-e(T=5): computing votes" in before
    assert max(int(percent) for percent in re.findall(r"(\d+)%", before)) < 100


def test_the_command_takes_seeds_and_draws_a_split_for_each(tmp_path):
    settings = CompareSettings(
        data="digits-knn", defence=("gnncert-e:num_groups=5",), sizes="0,1", seeds="0,1", references=False,
        fit={"epochs": 1},
    )  # fmt: skip
    compared = compare_run(settings, tmp_path)
    assert compared.comparison.seeds == (0, 1)
    assert "±" in (tmp_path / "edges.md").read_text("utf-8")
    certificates = [ac.load_certificate(file) for file in (tmp_path / "certificates").glob("*.cert")]
    assert len({tuple(certificate.target.tolist()) for certificate in certificates}) == 2
    with pytest.raises(SettingsError, match="twice"):
        replace(settings, seeds="0,0")


KERNEL = """
import agnncert as ac
from agnncert_peers.gnncert import GNNCertE
data = ac.load_dataset("digits-knn")
ac.compare(data, [GNNCertE(3)], sizes=[0, 1], references=False, fit={"epochs": 2})
"""


def test_the_bar_never_goes_back(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with bar.following(None) as follower:
        follower(Progress("comparing", 0, 4, 0.0, "several"))
        for done in (1, 2, 0, 1):
            follower.within(Progress("training", done, 2, float("nan")))
    shown = [int(percent) for percent in re.findall(r"(\d+)%", screen.getvalue())]
    assert max(shown) == 12
    assert shown == sorted(shown)


# The kernel's own machinery closes its sockets late and says so; that is not about the bar.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.slow
def test_a_notebook_shows_a_bar_and_then_the_table(tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(KERNEL)])
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute(cleanup_kc=True)
    outputs = notebook.cells[0].outputs
    printed = "".join(output.get("text", "") for output in outputs)
    assert "gnncert-e(T=3): training 2 of 2" in printed
    assert "<table" in outputs[-1]["data"]["text/html"]

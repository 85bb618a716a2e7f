"""Which runs the experiments are made of."""

import pytest

from agnncert.datasets.catalog import DATASETS
from agnncert.errors import SettingsError
from agnncert.undefended import GRAPH_FREE, UNDEFENDED
from experiments.paper import defences
from experiments.paper.spec import EXPERIMENTS, GRAPH_SETS, NODE_SETS, SEEDS, SMALL, Setting, contests, settings_of


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_runs_each_once_on_known_data(name, small) -> None:
    runs = settings_of(name, small)
    assert len(runs) == len(set(runs)) > 1
    assert {run.dataset for run in runs} <= set(DATASETS)


def test_main_results_have_three_seeds_and_every_model_and_division() -> None:
    runs = set(settings_of("accuracy"))
    for dataset in (*NODE_SETS, *GRAPH_SETS):
        groups, usual = (300, "balanced") if dataset in NODE_SETS else (30, "vote")
        for seed in SEEDS:
            assert Setting(dataset, model="mlp", seed=seed) in runs
            assert Setting(dataset, seed=seed) in runs
            assert Setting(dataset, division="edge", num_groups=groups, seed=seed, objective=usual) in runs
        assert Setting(dataset, model="gat", division="node", num_groups=groups, objective=usual) in runs


def test_all_numbers_of_groups_of_the_paper_are_run() -> None:
    found = {(run.dataset, run.num_groups) for run in settings_of("groups") if isinstance(run, Setting)}
    assert {t for d, t in found if d == "pubmed"} == {100, 200, 300, 400}
    assert {t for d, t in found if d == "dd"} == {10, 30, 50, 70}


def test_a_first_look_at_the_papers_data_repeats_runs_of_the_full_set() -> None:
    full = {run for name in EXPERIMENTS for run in settings_of(name)}
    small = {run for runs in SMALL.values() for run in runs if isinstance(run, Setting) and run.dataset in NODE_SETS}
    assert len(small) > 10
    assert small <= full


def test_a_typo_is_met_with_the_nearest_name() -> None:
    with pytest.raises(SettingsError, match='did you mean "hashes"'):
        settings_of("hashs")


def test_defences_are_called_the_same_everywhere() -> None:
    named = {contest.defence for dataset in (*NODE_SETS, *GRAPH_SETS) for contest in contests(dataset)}
    assert named == set(defences.WORDS)
    assert (UNDEFENDED, GRAPH_FREE) == (defences.UNDEFENDED, defences.GRAPH_FREE)

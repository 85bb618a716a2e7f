"""Settings of a run: the table that is stored, and the way back."""

import pytest

from agnncert.certificates.voting_rule import VotingRule
from agnncert.cli.folder import toml_text
from agnncert.cli.settings import FIT, CertifySettings, TrainSettings, keys_of, read_toml, settings_from
from agnncert.errors import SettingsError
from agnncert.training.settings import SETTINGS

# As folders of runs have it that were made when inner tables were written on one line.
OLD = """
[train]
data = "digits-knn"
directed = false
seed = 3
model = "gcn"
set = { num_layers = 2, dropout = 0.2 }
division = "node"
groups = 40
epochs = 10
lr = 0.01
protocol = "transductive"
patience = 0
references = false
"""


def test_a_table_of_an_old_run_is_read_and_written_again_unchanged(tmp_path) -> None:
    (tmp_path / "old.toml").write_text(OLD, encoding="utf-8")
    table = read_toml(tmp_path / "old.toml")["train"]
    settings = settings_from(TrainSettings, table)
    assert settings.fit == {"epochs": 10, "lr": 0.01, "protocol": "transductive", "patience": 0}
    assert (settings.seed, settings.references, settings.set["num_layers"]) == (3, False, 2)
    assert settings.table() == table
    (tmp_path / "new.toml").write_text(toml_text({"train": settings.table()}), encoding="utf-8")
    assert read_toml(tmp_path / "new.toml")["train"] == table


def test_no_patience_is_stored_as_zero_and_never_stops_training() -> None:
    assert settings_from(TrainSettings, {"patience": 0, "seed": 4}).fit_arguments() == {"patience": None, "seed": 4}


def test_every_setting_of_fit_is_one_of_training_and_size_is_one_setting() -> None:
    sizes = {"size", "against", "seed"}
    assert set(SETTINGS) - sizes == set(FIT) <= set(keys_of(TrainSettings))
    assert TrainSettings(size=2).fit_arguments() == {"seed": 0, "size": 2}
    certified = TrainSettings(size=2, against="structure", fit={"objective": "certified"}).fit_arguments()
    assert (certified["size"], certified["against"]) == (2, "structure")


@pytest.mark.parametrize(
    ("kind", "table", "said"),
    [
        (TrainSettings, {"epohcs": 3}, 'unknown setting "epohcs": did you mean "epochs"'),
        (TrainSettings, {"epochs": 0}, "epochs=0: expected a whole number from 1 on"),
        (TrainSettings, {"patience": -1}, "patience=-1"),
        (CertifySettings, {"epochs": 3}, 'unknown setting "epochs"'),
        (CertifySettings, {"engine": "fats"}, 'did you mean "fast"'),
    ],
)
def test_a_wrong_table_is_refused(kind, table, said) -> None:
    with pytest.raises(SettingsError, match=said):
        settings_from(kind, table)


def test_only_what_differs_from_the_defaults_counts_as_given() -> None:
    assert settings_from(CertifySettings, {"engine": "fast", "groups": 5, "feature": ["a"]}).given() == [
        "feature", "groups",
    ]  # fmt: skip
    assert TrainSettings(fit={"lr": 0.1}).given() == ["lr"]


NAMES = ["safe", "toxic", "a=b"]


@pytest.mark.parametrize(
    ("typed", "voting_rule"),
    [
        ({"empty": "toxic"}, VotingRule(1)),
        ({"empty": "abstain", "prior": "toxic=12"}, VotingRule("abstain", (0, 12, 0))),
        ({"empty": "0", "prior": "a=b=-3, safe=2"}, VotingRule(0, (2, 0, -3))),
        ({"empty": "no_edge", "prior": "5"}, VotingRule("no_edge", 5)),
        ({"prior": "1,2,3"}, VotingRule(prior=(1, 2, 3))),
        ({}, None),
    ],
)
def test_classes_in_a_voting_rule_may_be_called_by_name(typed, voting_rule) -> None:
    assert CertifySettings(**typed).voting_rule(NAMES) == voting_rule


@pytest.mark.parametrize(
    ("typed", "names", "said"),
    [
        ({"empty": "toxc"}, NAMES, 'no class is called "toxc": did you mean "toxic"? Valid: safe, toxic, a=b, no_edge'),
        ({"prior": "toxin=3"}, NAMES, 'no class is called "toxin": did you mean "toxic"? Valid: safe, toxic, a=b.'),
        ({"prior": "toxic=3,toxic=4"}, NAMES, 'the class "toxic" is called twice'),
        ({"prior": "toxic=many"}, NAMES, '"toxic=many" is not of the form CLASS=N'),
        ({"prior": "toxic=3,4"}, NAMES, '"4" is not of the form CLASS=N'),
        ({"empty": "toxic"}, None, "only have numbers: use these, or no_edge or abstain"),
    ],
)
def test_a_name_that_no_class_has_is_refused_with_those_that_there_are(typed, names, said) -> None:
    settings = CertifySettings(**typed)
    assert settings.sets_rule
    with pytest.raises(SettingsError) as refused:
        settings.voting_rule(names)
    assert said in str(refused.value)


def test_all_targets_with_a_true_class_can_be_certified():
    import torch

    from agnncert.cli.data import targets_of
    from agnncert.graphs.targets import CanonicalData
    from tests.support.neighbour_graphs import town

    data = town(6)
    data.test_mask = torch.tensor([True, False, False, False, False, False])
    data.y[2] = -1
    assert targets_of(CanonicalData.of(data), "labelled").tolist() == [0, 1, 3, 4, 5]
    assert targets_of(CanonicalData.of(data), None).tolist() == [0]
    data.y = None
    with pytest.raises(SettingsError, match="no target of the data has a true class"):
        targets_of(CanonicalData.of(data), "labelled")

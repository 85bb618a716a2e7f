"""The trained models that come with the package."""

import hashlib

import pytest

import agnncert as ac
from agnncert.cli.settings import CertifySettings
from agnncert.cli.studies import study_of_settings
from agnncert.models import io as bundled


@pytest.mark.parametrize("name", bundled.DIGESTS)
def test_a_model_is_the_file_that_belongs_to_this_version(name) -> None:
    weights = bundled.FOLDER / f"{name}.safetensors"
    assert hashlib.sha256(weights.read_bytes()).hexdigest() == bundled.DIGESTS[name]
    assert weights.stat().st_size < 200_000
    assert not ac.pretrained(name).training
    settings = bundled.pretrained_settings(name)
    assert (settings["data"], settings["seed"]) == (name, 0)
    assert "root" not in settings  # a place on the machine that trained


def test_digits_are_certified_without_training() -> None:
    settings, study = study_of_settings(CertifySettings(data="digits-knn", weights="pretrained"))
    assert (settings.model, settings.division, settings.groups) == ("gcn", "node", 60)
    certificate = ac.certify(study.model, study.data, study.defence, targets=study.targets[:100])
    right = certificate.label == certificate.truth
    assert (right & (certificate.radius >= 2)).mean() > 0.6  # it has learned something, so that attacks mean something


def test_a_division_of_the_users_own_has_its_own_number_of_groups() -> None:
    chosen, _ = study_of_settings(CertifySettings(data="digits-knn", weights="pretrained", division="edge"))
    assert (chosen.division, chosen.groups) == ("edge", 300)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"seed": 1}, "has seen the split of seed 0"),
        ({"model": "gat"}, "is a gcn with settings of its own"),
        ({"data": "digit-knn"}, 'did you mean "digits-knn"'),
    ],
)
def test_what_would_mislead_is_refused(wrong, words) -> None:
    with pytest.raises(ac.AgnncertError, match=words):
        study_of_settings(CertifySettings(**{"data": "digits-knn", "weights": "pretrained", **wrong}))


def test_another_file_in_its_place_is_refused(tmp_path, monkeypatch) -> None:
    model = ac.pretrained("digits-knn")
    monkeypatch.setattr(bundled, "FOLDER", tmp_path)
    next(model.parameters()).data.add_(1)
    ac.save_model(model, tmp_path / "digits-knn", {"training": {}})
    with pytest.raises(ac.errors.ModelContractError, match="not the file that belongs to this version"):
        ac.pretrained("digits-knn")

"""Repeat a run from its folder alone, and say whether the same came out."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from agnncert.errors import SettingsError
from agnncert.progress import OnProgress
from agnncert.proof.certificate import Certificate, load_certificate
from agnncert.studies.certify import certify_run
from agnncert.studies.folder import RunFolder, find_run
from agnncert.studies.inputs import settings_of_folder
from agnncert.studies.settings import CertifySettings, TrainSettings, settings_from
from agnncert.studies.train import train_run


@dataclass(frozen=True)
class Repeated:
    """The new run, and where it differs from the first."""

    folder: RunFolder
    differences: tuple[str, ...]


def repeat_run(
    source: str | Path,
    out: str | Path | None = None,
    root: str | None = None,
    on_progress: OnProgress | None = None,
    model: str | None = None,
    trust: bool = False,
) -> Repeated:
    """Does all steps of a run again, with the settings and the data that its folder names.

    Args:
        source: The folder of the run.
        out: The folder for the new run; the old one's name with ``-again`` when not given.
        root: Folder that holds the datasets, if not where they were.
        on_progress: Called after every epoch.
        model: The run's model, if it is code that is to be run and the folder was not made here.
        trust: Whether the folder is the user's own work, so that code and files that it names may be used.
    """
    old = find_run(source)
    if old is None:
        raise SettingsError(f"{source} is not the folder of a run: it has no settings.toml.")
    steps, place = old.settings, old.path.with_name(f"{old.path.name}-again") if out is None else Path(out)
    if not old.weights.is_file():
        raise SettingsError(f"{old} has not finished: run its command again first.")
    if place.resolve() == old.path.resolve():
        raise SettingsError(f"{old} would be replaced by its own repetition: choose another --out.")
    differences: list[str] = []
    if "train" in steps:
        training = settings_of_folder(old, settings_from(TrainSettings, steps["train"]), root, model, trust)
        new = train_run(training, place, fresh=True, on_progress=on_progress).folder
        if old.weights.read_bytes() != new.weights.read_bytes():
            differences.append("the weights are not the same, bit by bit")
        if "certify" in steps:
            again = settings_from(CertifySettings, {**steps["certify"], "data": str(new.path), "root": root})
            certify_run(again, trust=True)  # the new run was made just now, of what was permitted above
    elif "certify" in steps:
        settings = settings_of_folder(old, settings_from(CertifySettings, steps["certify"]), root, model, trust)
        new = certify_run(replace(settings, weights=str(old.weights)), place, fresh=True).folder
    else:
        raise SettingsError(f"{old} records no step that could be repeated.")
    if old.data.get("digest") != new.data.get("digest"):
        differences.insert(0, "the data is not the same")
    if old.certificate.is_file():
        differences += _certificate_differs(load_certificate(old.certificate), load_certificate(new.certificate))
    return Repeated(new, tuple(differences))


def _certificate_differs(old: Certificate, new: Certificate) -> list[str]:
    if not np.array_equal(old.target, new.target):
        return ["the targets are not the same"]
    if old.vote != new.vote:
        return [f"votes are counted in another way: {old.vote} was {new.vote}"]
    named = ("label", "radius", "structure_radius")
    counts = {name: int((getattr(old, name) != getattr(new, name)).sum()) for name in named}
    total = f"{old.num_targets:,}"
    return [f"the {name} of {count:,} of {total} targets is another" for name, count in counts.items() if count]

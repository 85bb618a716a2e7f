"""Repeat a run from its folder alone, and say whether the same came out."""

import logging
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from agnncert.errors import SettingsError
from agnncert.progress import OnProgress
from agnncert.proof.certificate import load_certificate
from agnncert.studies.certify import certify_run
from agnncert.studies.folder import RunFolder, find_run
from agnncert.studies.settings import AnySettings, CertifySettings, TrainSettings, settings_from
from agnncert.studies.train import train_run

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Repeated:
    """What came out the second time.

    Attributes:
        folder: The new run.
        differences: Where it differs from the first; empty if it does not.
    """

    folder: RunFolder
    differences: tuple[str, ...]


def repeat_run(
    source: str | Path, out: str | Path | None = None, root: str | None = None, on_progress: OnProgress | None = None
) -> Repeated:
    """Does all steps of a run again, with the settings and the data that its folder names.

    Args:
        source: The folder of the run.
        out: The folder for the new run; the old one's name with ``-again`` when not given.
        root: Folder that holds the datasets, if not where they were.
        on_progress: Told how far training is.
    """
    old = find_run(source)
    if old is None:
        raise SettingsError(f"{source} is not the folder of a run: it has no settings.toml.")
    steps, place = (old.settings, Path(out) if out is not None else old.path.with_name(f"{old.path.name}-again"))
    if not old.weights.is_file():
        raise SettingsError(f"{old} has not finished: run its command again first.")
    if place.resolve() == old.path.resolve():
        raise SettingsError(f"{old} would be replaced by its own repetition: choose another --out.")
    kept: dict[str, str] = {} if root is None else {"root": root}
    if old.tables.is_dir():
        kept["data"] = str(old.tables)
    differences: list[str] = []
    if "train" in steps:
        training = settings_from(TrainSettings, steps["train"])
        new = train_run(_at(training, kept), place, fresh=True, on_progress=on_progress).folder
        if old.weights.read_bytes() != new.weights.read_bytes():
            differences.append("the weights are not the same, bit by bit")
        if "certify" in steps:
            certify_run(settings_from(CertifySettings, {**steps["certify"], "data": str(new.path)}))
    elif "certify" in steps:
        settings = settings_from(CertifySettings, steps["certify"])
        settings = replace(settings, weights=str(old.weights))
        new = certify_run(_at(settings, kept), place, fresh=True).folder
    else:
        raise SettingsError(f"{old} records no step that could be repeated.")
    return Repeated(new, (*_data_differs(old, new), *differences, *_certificate_differs(old, new)))


def _at(settings: AnySettings, kept: dict[str, str]) -> AnySettings:
    """Settings that read the tables kept with the run, if there are any."""
    moved: dict[str, str | None] = {**kept}
    if "data" in kept:
        moved |= {"nodes": None, "edges": None, "graphs": None}
    return replace(settings, **moved)  # type: ignore[arg-type]


def _data_differs(old: RunFolder, new: RunFolder) -> list[str]:
    return [] if old.data.get("digest") == new.data.get("digest") else ["the data is not the same"]


def _certificate_differs(old: RunFolder, new: RunFolder) -> list[str]:
    if not old.certificate.is_file():
        return []
    before, after = load_certificate(old.certificate), load_certificate(new.certificate)
    if not np.array_equal(before.target, after.target):
        return ["the targets are not the same"]
    found = []
    for name in ("label", "radius"):
        count = int((getattr(before, name) != getattr(after, name)).sum())
        found += [f"the {name} of {count:,} of {before.num_targets:,} targets is another"] if count else []
    return found

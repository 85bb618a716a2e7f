"""The step that scores: ``score_data`` labels new data with everything that a run has certified."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.certificates.file import read_contents
from agnncert.certificates.votes import IntArray
from agnncert.certifier import certify
from agnncert.cli.ages import ages, ages_of_run, has_ages, looked_up
from agnncert.cli.data import has_events, load_data
from agnncert.cli.export_step import digest_of, require_format, table_of, write_table
from agnncert.cli.folder import ENCODING, RunFolder, find_run
from agnncert.cli.settings import DataSettings, DefenceSettings, stored_settings
from agnncert.cli.studies import certified_model, load_run_data, model_of_run
from agnncert.cli.tables_of import table_file
from agnncert.errors import SettingsError
from agnncert.graphs.targets import CanonicalData
from agnncert.graphs.task import task_of_targets
from agnncert.models.digest import model_digest
from agnncert.models.io import load_description, load_model
from agnncert.progress import OnProgress
from agnncert.proving.certificate import Certificate, load_certificate
from agnncert.proving.groups import Groups, degree_groups, ranges
from agnncert.recompute import defence_of_file


@dataclass(frozen=True)
class Scored:
    """What ``score_data`` returns.

    Attributes:
        file: The file with one row for each target.
        certificate: What was derived, with the labels and radii of all targets.
        run: The run whose model, threshold, encoding and voting rule were used.
        truth: True class of each target as the data says, in the numbers of the run, negative where it says nothing;
            None if the data has no classes. It was read after all labels were given.
    """

    file: Path
    certificate: Certificate
    run: RunFolder
    truth: IntArray | None = None

    @property
    def right(self) -> tuple[int, int] | None:
        """How many targets with a true class got it, and how many there are; None if there are none."""
        if self.truth is None or not (self.truth >= 0).any():
            return None
        return int((self.certificate.label == self.truth).sum()), int((self.truth >= 0).sum())

    @property
    def counts(self) -> dict[str, int]:
        """Number of targets by label."""
        names = [self.certificate.class_word(k) for k in range(self.certificate.num_classes)]
        return {name: int((self.certificate.label == k).sum()) for k, name in enumerate(names)}


def score_data(
    run: Path,
    named: DefenceSettings,
    *,
    ids: Path | None = None,
    only_new: bool = False,
    to: str = "csv",
    out: Path | None = None,
    on_progress: OnProgress | None = None,
) -> Scored:
    """Labels nodes of other data as a run does, and writes one row for each of them.

    Model, threshold, voting rule, encoding of the columns and names of the classes come from the run. What the data
    says about true classes is not used.

    Args:
        run: The folder of a certified run.
        named: ``data`` names the data; ``root`` and ``model`` as for other steps that read a run folder.
        ids: A file with the ids of the nodes to label, one on each line. Defaults to all nodes.
        only_new: Whether to label only nodes that the data of the run does not have. Defaults to False.
        to: The format, as for ``agnncert export``.
        out: Where to write. Defaults to ``scores.csv`` (or another ending) in the present folder.
        on_progress: Called while a table of events is read, and while predictions are computed.

    Raises:
        SettingsError: The run is not certified, its model is not the certified one, or an id is not in the data.
    """
    require_format(to)
    folder = find_run(run)
    if folder is None or not folder.certificate.is_file():
        raise SettingsError(f"{run} is not the folder of a certified run: agnncert certify makes one.")
    contents = read_contents(folder.certificate)
    model = certified_alone(folder, named)
    if model_digest(model) != contents.claim.digests.get("model"):
        raise SettingsError(f"the model in {folder} is not the certified one: certify it again first.")
    settings = _settings_like(folder, named)
    data, truth = _data_of(settings, folder, contents.class_names, on_progress)
    canonical_data = CanonicalData.of(data)
    task = task_of_targets(data)
    if task != contents.claim.task:
        table = " List the pairs to label in pairs.csv beside them." if contents.claim.task == "pair" else ""
        raise SettingsError(f"{folder} classifies {contents.claim.task}s, {named.data} has {task}s as targets.{table}")
    rows = _chosen_rows(canonical_data, folder, named, ids, only_new)
    defence = defence_of_file(contents, model)
    certificate = replace(certify(model, canonical_data, defence, rows, progress=on_progress), truth=None)
    out = out or Path(f"scores.{to}")
    columns = table_of(certificate, folder.path.resolve().name, digest_of(folder.certificate))
    of_run = load_certificate(folder.certificate)
    columns |= _of_like(certificate, of_run) | _of_age(certificate, of_run, folder, settings)
    write_table(columns, to, out)
    known = None if truth is None else truth[certificate.row]
    return Scored(out, certificate, folder, known)


def _of_like(certificate: Certificate, of_run: Certificate) -> dict[str, list[Any]]:
    """Returns for each target what the run found among targets with about as many edges: detection is not the same."""
    if certificate.degree is None or of_run.degree is None or of_run.truth is None or certificate.claim.task != "node":
        return {}
    names = [str(each) for each in degree_groups(certificate.degree)]
    found = _found_in(of_run.by_group("degree"), names)
    return {
        "edges": certificate.degree.tolist(),
        "edges_range": names,
        "recall_in_range": found[0],
        "false_positives_in_range": found[1],
    }


def _of_age(
    certificate: Certificate, of_run: Certificate, folder: RunFolder, settings: DataSettings
) -> dict[str, list[Any]]:
    """Does the same by the time since the first event of each target, if run and new data have events with times."""
    if of_run.truth is None or not has_ages(folder) or not has_events(settings):
        return {}
    then = looked_up(of_run, ages_of_run(folder))
    now = looked_up(certificate, ages(settings, table_file(settings, "events")))
    names = [None if each is None else str(each) for each in ranges(now, of=then)]
    found = _found_in(of_run.by_group(list(ranges(then))), names)
    return {
        "age": [_known(age) for age in now.tolist()],
        "age_range": names,
        "recall_in_age_range": found[0],
        "false_positives_in_age_range": found[1],
    }


def _found_in(groups: Groups, names: Sequence[str | None]) -> tuple[list[float | None], list[float | None]]:
    """Returns recall and rate of false positives of the group with each name; None where they are not known."""
    rates = {each.name: (_known(each.recall.now), _known(each.false_positives.now)) for each in groups.groups}
    both = [rates.get(name or "", (None, None)) for name in names]
    return [recall for recall, _ in both], [false for _, false in both]


def _known(share: float) -> float | None:
    return None if share != share else share


def certified_alone(folder: RunFolder, named: DefenceSettings) -> Any:
    """Returns the certified model of a run. A built-in one needs no data."""
    file = folder.certified_weights if folder.certified_weights.is_file() else folder.weights
    if file.is_file() and load_description(file)["model"] is not None:
        return load_model(file)
    data = load_run_data(folder, named.root)
    return certified_model(folder, model_of_run(folder, data, named, named.root))


def _settings_like(folder: RunFolder, named: DefenceSettings) -> DataSettings:
    """Returns settings that load new data in the way in which the run loaded its own."""
    stored = stored_settings(folder)
    if not (named.data or named.events):
        raise SettingsError("score needs the data to label: a dataset, or a folder with tables.")
    settings = replace(
        stored,
        data=named.data,
        nodes=named.nodes,
        edges=named.edges,
        graphs=named.graphs,
        pairs=named.pairs,
        events=named.events,
        as_of=named.as_of,
        name=None,
        root=named.root,
    )
    if (folder.path / ENCODING).is_file():
        settings = replace(settings, encode=str(folder.path / ENCODING))
    return settings


def _data_of(
    settings: DataSettings, folder: RunFolder, class_names: tuple[str, ...], on_progress: OnProgress | None
) -> tuple[Any, IntArray | None]:
    """Loads new data without true classes and with the run's names of classes.

    Returns:
        The data, and its true classes apart from it, in the numbers of the run; None if it has none.
    """
    kind = "pairs" if folder.data.get("task") == "pair" else "nodes"
    data = load_data(_without_missing_label(settings, kind), on_progress)
    truth = None
    if getattr(data, "y", None) is not None and not isinstance(data, list | tuple):
        truth = _in_numbers_of_run(data, class_names)
        data.y = None
    if task_of_targets(data) == "pair":
        data.edge_label = None
        truth = None
    data.class_names = list(class_names) if class_names else None
    return data, truth


def _in_numbers_of_run(data: Any, class_names: tuple[str, ...]) -> IntArray:
    """Returns the true classes of nodes as the run numbers them; negative where it has no such class."""
    truth = np.asarray(data.y, dtype=np.int64).reshape(-1)
    own = list(getattr(data, "class_names", None) or ())
    if not own or not class_names:
        return truth
    number = np.array([class_names.index(name) if name in class_names else -1 for name in own])
    return np.where(truth >= 0, number[np.clip(truth, 0, len(number) - 1)], -1)


def _without_missing_label(settings: DataSettings, kind: str) -> Any:
    """Returns the settings without the column of true classes, if the table does not have it, or if it is not used.

    Args:
        settings: The settings.
        kind: Which table has the true classes: "nodes" or "pairs".
    """
    if has_events(settings):
        unused = ("label_time", "time")
        columns = {name: title for name, title in settings.column.items() if name not in unused}
        return replace(settings, column={**columns, "label": "none"})
    table = Path(getattr(settings, kind) or Path(settings.data or "", f"{kind}.csv"))
    label = settings.column.get("label")
    if label is None or not table.is_file() or table.suffix != ".csv":
        return settings
    with table.open(encoding="utf-8-sig") as file:
        titles = [title.strip().strip('"') for title in file.readline().split(",")]
    if label in titles:
        return settings
    return replace(settings, column={**settings.column, "label": "none"})


def _chosen_rows(
    data: CanonicalData, folder: RunFolder, named: DefenceSettings, ids: Path | None, only_new: bool
) -> Any:
    """Returns the rows of the nodes to label, ``None`` for all."""
    if ids is None and not only_new:
        return None
    if task_of_targets(data.data) == "pair":
        raise SettingsError(
            "--ids and --new choose nodes: this run classifies pairs. List those to label in pairs.csv."
        )
    if data.task != "node":
        raise SettingsError("--ids and --new choose nodes: this run classifies graphs.")
    row_of = {str(name): row for row, name in enumerate(data.targets(None).ids.tolist())}
    chosen = list(row_of)
    if ids is not None:
        lines = ids.read_text(encoding="utf-8").splitlines()
        chosen = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
        unknown = [name for name in chosen if name not in row_of]
        if unknown:
            more = f" and {len(unknown) - 1:,} more" if len(unknown) > 1 else ""
            raise SettingsError(f"{ids}: the data has no node {unknown[0]!r:.60}{more}.")
    if only_new:
        known = CanonicalData.of(load_run_data(folder, named.root))
        earlier = {str(name) for name in known.targets(None).ids.tolist()}
        chosen = [name for name in chosen if name not in earlier]
    if not chosen:
        raise SettingsError("no node is left to label: all of them are in the data of the run, or --ids names none.")
    return np.array([row_of[name] for name in chosen], dtype=np.int64)

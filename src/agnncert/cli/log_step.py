"""``agnncert log RUN --to mlflow``: settings, figures and files of a run, as a run of MLflow."""

import hashlib
import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agnncert import __version__
from agnncert.cli.folder import SETTINGS, Row, RunFolder, find_run
from agnncert.errors import SettingsError, did_you_mean, missing

if TYPE_CHECKING:
    from pathlib import Path

    from mlflow.entities import Run
    from mlflow.tracking import MlflowClient

TRACKERS = ("mlflow",)
ARTIFACTS = ("certificate.cert", "report.html", "MODEL_CARD.md", "results.csv", SETTINGS)
_DIGEST = "agnncert.certificate"
_MOST_CHARACTERS = 500  # of a parameter


@dataclass(frozen=True)
class Logged:
    """What was logged, and where.

    Attributes:
        tracking: Address of the store.
        experiment: Name of the experiment.
        run_id: The run of MLflow.
        is_new: Whether it was logged now, and not before.
        metrics: Number of figures.
        artifacts: Names of the files.
    """

    tracking: str
    experiment: str
    run_id: str
    is_new: bool
    metrics: int
    artifacts: tuple[str, ...]


def log_run(source: "str | Path", tracker: str, tracking: str | None = None, experiment: str = "agnncert") -> Logged:
    """Logs a certified run. A run that was logged before, with the same certificate, is left as it is.

    Args:
        source: The run folder.
        tracker: What to log to. Only "mlflow" is known.
        tracking: Address of MLflow's store, such as ``sqlite:///mlflow.db``. Defaults to that of MLflow's own settings.
        experiment: Name of the experiment, which is made if it is not there.

    Raises:
        SettingsError: The folder is no certified run, the tracker is unknown, or MLflow refuses.
        MissingPackage: MLflow is not installed.
    """
    if tracker not in TRACKERS:
        raise SettingsError(f'cannot log to "{tracker}": {did_you_mean(tracker, TRACKERS)}')
    folder = find_run(source)
    if folder is None:
        raise SettingsError(f"{source} is not the folder of a run: agnncert train or certify makes one.")
    if not folder.certificate.is_file():
        raise SettingsError(f"{folder} has no certificate yet: agnncert certify {folder} makes one.")
    try:
        from mlflow.exceptions import MlflowException
        from mlflow.tracking import MlflowClient
    except ModuleNotFoundError as error:
        raise missing(error.name, "agnncert log --to mlflow") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # MLflow's own, about packages that it uses
            client = MlflowClient(tracking_uri=tracking, registry_uri=tracking)
            return _log(client, folder, experiment)
    except MlflowException as error:
        first_line = str(error).strip().split("\n")[0]
        raise SettingsError(
            f"MLflow cannot log to {tracking or 'its usual store'}: {first_line} A local store is "
            "--tracking sqlite:///mlflow.db."
        ) from None


def _log(client: "MlflowClient", folder: RunFolder, experiment: str) -> Logged:
    known = client.get_experiment_by_name(experiment)
    experiment_id = client.create_experiment(experiment) if known is None else known.experiment_id
    digest = _digest(folder)
    earlier = client.search_runs([experiment_id], f"tags.`{_DIGEST}` = '{digest}' and attributes.status = 'FINISHED'")
    if earlier:
        return _described(client, experiment, earlier[0], is_new=False)
    run = client.create_run(experiment_id, run_name=folder.path.name, tags=_tags(folder, digest))
    for name, text in _parameters(folder.settings).items():
        client.log_param(run.info.run_id, name, text)
    for name, value in metrics_of(folder.rows()).items():
        client.log_metric(run.info.run_id, name, value)
    for size, value in _curve(folder.rows()).items():
        client.log_metric(run.info.run_id, "certified_accuracy", value, step=size)
    for name in ARTIFACTS:
        if (folder.path / name).is_file():
            client.log_artifact(run.info.run_id, str(folder.path / name))
    client.set_terminated(run.info.run_id)
    return _described(client, experiment, client.get_run(run.info.run_id), is_new=True)


def _described(client: "MlflowClient", experiment: str, run: "Run", is_new: bool) -> Logged:
    run_id = run.info.run_id
    artifacts = tuple(sorted(file.path for file in client.list_artifacts(run_id)))
    return Logged(client.tracking_uri, experiment, run_id, is_new, len(run.data.metrics), artifacts)


def _digest(folder: RunFolder) -> str:
    return hashlib.sha256(folder.certificate.read_bytes()).hexdigest()


def _tags(folder: RunFolder, digest: str) -> dict[str, str]:
    return {_DIGEST: digest, "agnncert.version": __version__, "agnncert.data": str(folder.data.get("name", ""))}


def _parameters(settings: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Returns the settings of every step, flat: ``train.lr``."""
    flat: dict[str, str] = {}
    for step, table in settings.items():
        for name, value in table.items():
            entries = value.items() if isinstance(value, dict) else [("", value)]
            for inner, each in entries:
                full_name = ".".join(part for part in (step, name, str(inner)) if part)
                flat[_allowed(full_name)] = str(each)[:_MOST_CHARACTERS]
    return flat


def metrics_of(rows: list[Row]) -> dict[str, float]:
    """Returns the figures of a run by a name that MLflow allows, which ``certified_accuracy@3`` is not.

    Example:
        >>> metrics_of([{"measure": "certified accuracy", "size": 3, "value": 0.5}])
        {'certified_accuracy_at_3': 0.5}
    """
    figures: dict[str, float] = {}
    for row in rows:
        if row["value"] is None:
            continue
        at = "" if row.get("size") is None else f"_at_{row['size']:g}"
        name = re.sub(r"[^a-z0-9.]+", "_", row["measure"].lower()).strip("_")
        figures[f"{name}{at}"] = float(row["value"])
    return figures


def _curve(rows: list[Row]) -> dict[int, float]:
    return {
        int(row["size"]): float(row["value"])
        for row in rows
        if row["measure"] == "certified accuracy" and row.get("size") is not None
    }


def _allowed(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.\- /]", "_", name)

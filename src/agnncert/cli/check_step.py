"""``audit`` and ``verify`` for the command line: data and model are named by settings, or are those of a run folder."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from agnncert.auditing.model_audit import AuditReport, audit
from agnncert.cli.folder import RunFolder, find_run
from agnncert.cli.inputs import (
    fresh_model,
    is_module_spec,
    load_data,
    load_run_data,
    load_weights,
    make_division,
    model_of_run,
    stored_settings,
    study_of_run,
    trained_model,
)
from agnncert.cli.settings import CertifySettings, ModelSettings, require_one_of
from agnncert.errors import SettingsError
from agnncert.graphs.graph import infer_task
from agnncert.progress import OnProgress
from agnncert.verdict import Verdict, verify


def audit_named(settings: ModelSettings, task: str | None = None, model: str | None = None) -> AuditReport:
    """Whether the model that settings name may be certified.

    Args:
        settings: ``model`` may also be the folder of a run. Without ``data``, a user's model is probed with
            random features, and a built-in one with the digits.
        task: ``"node"`` or ``"graph"``, if no data says which.
        model: The model of the run as ``package.module:factory``; required if ``settings.model`` is the folder of a run
            whose model is code.
    """
    run = find_run(str(settings.model)) if settings.model and Path(settings.model).is_dir() else None
    if run is not None:
        changes = CertifySettings(root=settings.root, model=model, division=settings.division, groups=settings.groups)
        _, study = study_of_run(run, changes)
        return audit(study.new_model(), study.data, study.division)
    if model is not None:
        raise SettingsError(f"--model {model} goes with the folder of a run, which {settings.model} is not.")
    wanted = task or "node"
    require_one_of("task", wanted, ("node", "graph"))
    built_in = not is_module_spec(settings.model or "")
    if built_in and not settings.data:
        settings = replace(settings, data="digits-grid" if wanted == "graph" else "digits-knn")
    data = load_data(settings) if settings.data or settings.nodes else None
    settings, division = make_division(settings, wanted if data is None else _task(data, task))
    module = fresh_model(settings, data)
    module = load_weights(module, settings.weights) if settings.weights is not None else module.eval()
    return audit(module, data, division, task=None if data is not None else wanted)  # type: ignore[arg-type]


def _task(data: object, task: str | None) -> str:
    of_data = infer_task(data)
    if task is not None and task != of_data:
        raise SettingsError(f"--task {task} does not fit the data, which is for {of_data} classification.")
    return of_data


def verify_named(
    certificate: Path, named: ModelSettings, recheck: float, on_progress: OnProgress | None = None
) -> Verdict:
    """Verifies a certificate and recomputes predictions, with the named data and model, or with those of its run.

    Code of a model is imported only if ``named`` names it.

    Raises:
        SettingsError: Something is not named and the certificate lies in no run folder, or what is not named is code.
    """
    data_run = find_run(named.data) if named.data and Path(named.data).is_dir() else None
    run = data_run or find_run(certificate)
    own_data = bool(named.data) and data_run is None
    if run is None and not own_data:
        raise SettingsError(f"{certificate} lies in no run folder: name the data with --data.")
    data = load_data(named) if run is None or own_data else load_run_data(run, named.root)
    model = _model_to_check(run, named, data, own_data, recheck)
    how: dict[str, Any] = {"recheck": recheck, "seed": named.seed, "progress": on_progress}
    return verify(certificate, data=data, model=model, **how)


def _model_to_check(run: RunFolder | None, named: ModelSettings, data: Any, own_data: bool, recheck: float) -> Any:
    """The model that the user names, else that of the run; none if only the user's own data is to be compared."""
    if own_data and not (named.model or named.weights or recheck):
        return None
    if run is None and named.model is None:
        raise SettingsError("recomputing predictions needs the model: name it with --model and --weights.")
    if run is None or (own_data and named.model not in (None, stored_settings(run).model)):
        return trained_model(named, data)
    return model_of_run(run, data, named, named.root)

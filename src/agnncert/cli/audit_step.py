"""The step that audits: ``audit_named`` checks whether a model may be certified."""

from dataclasses import replace
from pathlib import Path

from agnncert.auditing.model_audit import AuditReport
from agnncert.cli.data import load_data
from agnncert.cli.defences import make_defence
from agnncert.cli.folder import RunFolder, find_run
from agnncert.cli.models import fresh_model, load_weights
from agnncert.cli.settings import CertifySettings, DefenceSettings, require_one_of
from agnncert.cli.studies import study_of_run
from agnncert.cli.user_code import is_module_spec
from agnncert.defence import Task
from agnncert.errors import SettingsError
from agnncert.graphs.task import infer_task, task_of_targets


def audit_named(settings: DefenceSettings, task: str | None = None, model: str | None = None) -> AuditReport:
    """Checks whether the model that settings name may be certified.

    Args:
        settings: ``model`` may also be the folder of a run. Without ``data``, a user's model is probed with
            random features, and a built-in one with the digits.
        task: "node" or "graph", if no data says which.
        model: The model of that run; required if it is code.

    Raises:
        SettingsError: The settings make no sense, or the task is not that of the data.
    """
    run = find_run(str(settings.model)) if settings.model and Path(settings.model).is_dir() else None
    if run is not None:
        return _audit_run(run, settings, model)
    if model is not None:
        raise SettingsError(f"--model {model} goes with the folder of a run, which {settings.model} is not.")
    require_one_of("task", task or "node", ("node", "graph"))
    wanted: Task = "graph" if task == "graph" else "node"
    if not is_module_spec(settings.model or "") and not settings.data:
        settings = replace(settings, data="digits-grid" if wanted == "graph" else "digits-knn")
    data = load_data(settings) if settings.data or settings.nodes else None
    task_of_data = wanted if data is None else infer_task(data)
    if task not in (None, task_of_data):
        raise SettingsError(f"--task {task} does not fit the data, which is for {task_of_data} classification.")
    settings, defence = make_defence(settings, task_of_data if data is None else task_of_targets(data), data)
    audited_model = fresh_model(settings, data, defence)
    if settings.weights is not None:
        audited_model = load_weights(defence.untrained(audited_model, data, settings.seed), settings.weights)
    if audited_model is not None:
        audited_model = audited_model.eval()
    return defence.audit(audited_model, data, task_of_data)


def _audit_run(run: RunFolder, settings: DefenceSettings, model: str | None) -> AuditReport:
    """Audits the model of a run for its defence, or for another one that the settings name."""
    changes = CertifySettings(
        root=settings.root, model=model, division=settings.division, groups=settings.groups, defence=settings.defence
    )
    _, study = study_of_run(run, changes)
    return study.seeded_defence.audit(study.new_model(), study.data)

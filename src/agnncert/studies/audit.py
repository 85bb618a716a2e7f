"""Audit a model by name: built in, of the user's own, or of an earlier run."""

from dataclasses import replace
from pathlib import Path

from agnncert.errors import SettingsError
from agnncert.studies.folder import find_run
from agnncert.studies.inputs import fresh_model, load_data, make_division
from agnncert.studies.own_model import is_module_spec, load_weights
from agnncert.studies.settings import CertifySettings, require_one_of
from agnncert.studies.subject import of_run
from agnncert.voting.auditing import AuditReport, audit


def audit_named(settings: CertifySettings, task: str | None = None) -> AuditReport:
    """Whether the model that settings name may be certified.

    Args:
        settings: ``model`` may also be the folder of a run. Without ``data``, a user's model is probed with
            random features, and a built-in one with the digits.
        task: ``"node"`` or ``"graph"``, if no data says which.
    """
    run = find_run(str(settings.model)) if settings.model and Path(settings.model).is_dir() else None
    if run is not None:
        subject = of_run(run, CertifySettings(root=settings.root, division=settings.division, groups=settings.groups))
        return audit(subject.model, division=subject.division, data=subject.data)
    wanted = task or "node"
    require_one_of("task", wanted, ("node", "graph"))
    built_in = not is_module_spec(settings.model or "")
    if built_in and not settings.data:
        settings = replace(settings, data="digits-grid" if wanted == "graph" else "digits-knn")
    data = load_data(settings) if settings.data or settings.nodes else None
    settings, division = make_division(settings, wanted if data is None else _task(data, task))
    model = fresh_model(settings, data)
    model = load_weights(model, settings.weights) if settings.weights is not None else model.eval()
    return audit(model, wanted, division, data)  # type: ignore[arg-type]


def _task(data: object, task: str | None) -> str:
    from agnncert.graphs.graph import infer_task

    found = infer_task(data)
    if task is not None and task != found:
        raise SettingsError(f"--task {task} does not fit the data, which is for {found} classification.")
    return found

"""The step that verifies: ``verify_named`` compares a certificate with data and model."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from agnncert.cli.data import load_data
from agnncert.cli.folder import RunFolder, find_run
from agnncert.cli.models import trained_model
from agnncert.cli.settings import DefenceSettings, stored_settings
from agnncert.cli.studies import DataChangedError, load_run_data, model_of_run
from agnncert.cli.user_code import is_module_spec
from agnncert.errors import DatasetError, SettingsError
from agnncert.progress import OnProgress
from agnncert.verdict import Verdict, verify


def verify_named(
    certificate: Path, named: DefenceSettings, recheck: float, on_progress: OnProgress | None = None
) -> Verdict:
    """Verifies a certificate and recomputes predictions, with the named data and model, or with those of its run.

    Code of a model is imported only if ``named`` names it. If the model of the run is code and nothing is to be
    recomputed, the certificate is compared with the data alone, and the verdict says so.

    Raises:
        SettingsError: Something is not named and the certificate lies in no run folder, or what is not named is code.
    """
    data_run = find_run(named.data) if named.data and Path(named.data).is_dir() else None
    run = data_run or find_run(certificate)
    own_data = bool(named.data) and data_run is None
    if run is None and not own_data:
        raise SettingsError(f"{certificate} lies in no run folder: name the data with --data.")
    if run is None or own_data:
        data = load_data(named, on_progress)
    else:
        try:
            data = load_run_data(run, named.root, on_progress)
        except DataChangedError:
            return _refused(certificate, f"the data of {run} is not what the run was made from: its digest differs")
        except DatasetError as error:
            if not run.tables.is_dir():  # a dataset that is not on this machine
                raise
            return _refused(certificate, f"the data of {run} is not what the run was made from: {error}")
    model = _model_to_check(run, named, data, own_data, recheck)
    return verify(certificate, data=data, model=model, recheck=recheck, seed=named.seed, progress=on_progress)


def _refused(certificate: Path, reason: str) -> Verdict:
    """Returns the verdict on a run whose data is not what it was made from. Its file is checked all the same."""
    alone = verify(certificate)
    return replace(alone, holds=False, reasons=(reason, *alone.reasons))


def _model_to_check(run: RunFolder | None, named: DefenceSettings, data: Any, own_data: bool, recheck: float) -> Any:
    """Returns the model that the user names, else that of the run; ``None`` if only data is to be compared."""
    if not (named.model or named.weights or recheck) and (own_data or _is_code(run)):
        return None
    if run is None and named.model is None:
        raise SettingsError("recomputing predictions needs the model: name it with --model and --weights.")
    if run is None or (own_data and named.model not in (None, stored_settings(run).model)):
        return trained_model(named, data)
    return model_of_run(run, data, named, named.root)


def _is_code(run: RunFolder | None) -> bool:
    return run is not None and is_module_spec(stored_settings(run).model or "")

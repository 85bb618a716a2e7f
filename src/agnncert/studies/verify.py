"""Verify a certificate against the data and the model it speaks about."""

from pathlib import Path

from agnncert.errors import SettingsError
from agnncert.studies.folder import find_run
from agnncert.studies.inputs import load_data, trained_model
from agnncert.studies.settings import CertifySettings
from agnncert.studies.subject import of_run
from agnncert.verifier import Verdict, verify


def recheck(certificate: Path, named: CertifySettings, ballots: float) -> Verdict:
    """Casts ballots again, on the data and with the model that are named, else on those of the run.

    Raises:
        SettingsError: Something is not named and the certificate lies in no run folder.
    """
    place = named.data if named.data and Path(named.data).is_dir() else certificate
    run = find_run(place)
    if run is not None and (not named.data or place == named.data) and named.model is None:
        subject = of_run(run, CertifySettings(root=named.root))
        return verify(certificate, data=subject.data, model=subject.model, ballots=ballots, seed=named.seed)
    if not named.data:
        raise SettingsError(f"{certificate} lies in no run folder: name the data with --data.")
    data = load_data(named)
    if named.model is None and ballots:
        raise SettingsError("casting ballots again needs the model: name it with --model and --weights.")
    model = None if named.model is None else trained_model(named, data)
    return verify(certificate, data=data, model=model, ballots=ballots, seed=named.seed)

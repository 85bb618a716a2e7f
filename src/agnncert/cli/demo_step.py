"""The whole path on data that needs no download: train, certify, attack, verify, report."""

import logging
import time
from dataclasses import dataclass
from pathlib import Path

from agnncert.cli.attack_step import Attacked, AttackSettings, attack_run
from agnncert.cli.certify_step import certify_run
from agnncert.cli.check_step import verify_named
from agnncert.cli.folder import RunFolder
from agnncert.cli.report_step import report_run
from agnncert.cli.settings import CertifySettings, TrainSettings
from agnncert.cli.train_step import train_run
from agnncert.progress import OnProgress
from agnncert.verdict import Verdict

log = logging.getLogger(__name__)

BALLOTS = 200
GROUPS = 60


@dataclass(frozen=True)
class Demo:
    """The run of the demonstration, its report, and what attacks and verifier said.

    Attributes:
        sentences: What is proved, how it compares, how to verify it.
        seconds: Time that all of it took.
    """

    folder: RunFolder
    page: Path
    sentences: tuple[str, ...]
    attacked: Attacked
    verdict: Verdict
    seconds: float


def demo_run(out: str | Path = "runs/demo", on_progress: OnProgress | None = None) -> Demo:
    """Trains, certifies, attacks, verifies and reports on the digits that come with scikit-learn.

    Args:
        out: The run folder; a run that it holds is replaced.
        on_progress: Called after every epoch.
    """
    begin = time.perf_counter()
    log.info("[1/5] Train a GCN to read 1,797 written digits, each joined to the most similar others")
    training = TrainSettings(data="digits-knn", model="gcn", division="node", groups=GROUPS)
    folder = train_run(training, out, fresh=True, on_progress=on_progress).folder
    log.info("[2/5] Let %d subgraphs vote on every test digit, and prove what no attack can change", GROUPS)
    certify_run(CertifySettings(data=str(folder.path)), report=False, on_progress=on_progress)
    log.info("[3/5] Attack the votes with full knowledge of model and division")
    attacked = attack_run(folder.path, AttackSettings(sample="40"))
    log.info("[4/5] Verify the certificate from its file, and cast %d ballots again, one by one", BALLOTS)
    verdict = verify_named(folder.certificate, CertifySettings(), BALLOTS)
    log.info("[5/5] Write the report")
    reported = report_run(folder.path)
    return Demo(folder, reported.page, reported.sentences, attacked, verdict, time.perf_counter() - begin)

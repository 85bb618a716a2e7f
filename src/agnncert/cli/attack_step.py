"""The step that attacks: ``attack_run`` attacks the targets of a certified run, within what is proved and beyond."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.attacks.api import KINDS, attack
from agnncert.attacks.problem import require_test_time
from agnncert.certificates.budget import COUNTS, Budget
from agnncert.certificates.file import read_contents
from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.cli.folder import RunFolder, find_run
from agnncert.cli.report_step import UNDER_ATTACK, report_run
from agnncert.cli.settings import CertifySettings, numbers, require_one_of
from agnncert.cli.studies import certified_model, row_origin, study_of_run
from agnncert.errors import BudgetError, SettingsError, did_you_mean
from agnncert.models.digest import model_digest
from agnncert.proving.certificate import Certificate, load_certificate
from agnncert.recompute import defence_of_file
from agnncert.study import Study

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AttackSettings:
    """How to attack."""

    kind: tuple[str, ...] = ("greedy",)  # names of attacks; the best of them counts for each target
    vary: str = "add_edges"  # the field of the budget that grows
    sizes: str = ""  # its values, such as "1,5,20"; by default around what is certified
    also: Mapping[str, Any] = field(default_factory=dict)  # the other fields of the budget
    sample: str = "50"  # targets at each size, half of them certified there; "all" for all correct ones
    seed: int = 0  # of the sample and of the attacks

    def __post_init__(self) -> None:
        for name in self.kind:
            require_one_of("attack", name, KINDS)
        if self.vary not in COUNTS:
            raise BudgetError(f'cannot vary "{self.vary}": {did_you_mean(self.vary, COUNTS)}')
        numbers("sizes", self.sizes)
        if self.sample != "all" and not (self.sample.isdecimal() and int(self.sample)):
            raise SettingsError(f"sample={self.sample}: expected a whole number from 1 on, or all.")
        require_test_time(self.budget(0))

    def budget(self, size: int) -> Budget:
        """What the attacker may do at one size."""
        rest = {name: np.inf if value == "inf" else value for name, value in self.also.items()}
        return Budget().but(**rest).but(**{self.vary: size})

    def table(self) -> dict[str, Any]:
        """The settings as a run folder stores them."""
        return {
            **asdict(self),
            "kind": list(self.kind),
            "also": {k: "inf" if v == np.inf else v for k, v in self.also.items()},
        }


@dataclass(frozen=True)
class Round:
    """The outcome at one size of the attack."""

    size: int
    certified: float  # share of all targets that are correct and certified
    left: float  # share that is correct after the attack; estimated if only a sample was attacked
    attacked_certified: int  # certified targets that were attacked, ...
    fallen_certified: int  # ... of which this many changed their label: anything but 0 refutes the certificate
    attacked_others: int  # correct targets without a certificate that were attacked, ...
    fallen_others: int  # ... of which this many changed their label


@dataclass(frozen=True)
class Attacked:
    """A run after the attacks: a round for each size, and the new report."""

    folder: RunFolder
    rounds: tuple[Round, ...]
    page: Path | None

    @property
    def violations(self) -> int:
        """Certified labels that fell; there must be none."""
        return sum(each.fallen_certified for each in self.rounds)


def attack_run(
    source: str | Path, settings: AttackSettings, root: str | None = None, model: str | None = None
) -> Attacked:
    """Attacks the targets of a run's certificate and adds the outcome to the run; ``model`` is needed if it is code."""
    folder = find_run(source)
    if folder is None or not folder.certificate.is_file():
        raise SettingsError(f"{source} is not the folder of a certified run: agnncert certify makes one.")
    with folder.recording():
        named, study = study_of_run(folder, CertifySettings(root=root, model=model))
        certificate = load_certificate(folder.certificate)
        certified = certified_model(folder, study.new_model())
        if model_digest(certified) != certificate.claim.digests.get("model"):
            raise SettingsError(f"the model in {folder} is not the certified one: certify it again first.")
        # What was certified counts, which need not be what the run began with.
        defence = defence_of_file(read_contents(folder.certificate), certified)
        study = replace(study, defence=defence, model=certified, voting_rule=None)
        settings = replace(settings, sizes=settings.sizes or ",".join(map(str, usual_sizes(certificate))))
        folder.begin("attack", settings.table(), folder.data)
        rounds = _rounds(study, certificate, settings)
        origin = _origin(folder) or row_origin(named, study, folder.data)
        folder.put_rows("attack", _rows(origin, certificate, settings, rounds))
        page = report_run(folder.path).page
    return Attacked(folder, rounds, page)


def usual_sizes(certificate: Certificate) -> tuple[int, ...]:
    """Half of the median radius, the median radius, one more than any radius, and twice that."""
    middle, top = int(np.median(certificate.radius)), int(certificate.radius.max(initial=0))
    return tuple(sorted({max(1, middle // 2), max(1, middle), top + 1, 2 * (top + 1)}))


def _rounds(study: Study, certificate: Certificate, settings: AttackSettings) -> tuple[Round, ...]:
    correct, total = np.ones(certificate.num_targets, dtype=bool), certificate.num_targets
    if certificate.truth is not None:
        correct, total = certificate.label == certificate.truth, int(certificate.labelled.sum())
    free, random, rounds = correct.copy(), np.random.default_rng(settings.seed), []
    for size in numbers("sizes", settings.sizes):
        budget = settings.budget(size)
        holds, chosen = certificate.holds_against(budget), np.flatnonzero(correct)
        if settings.sample != "all":  # in a sample, no target is attacked at two sizes
            chosen = _sample(free, holds, int(settings.sample), random)
            free[chosen] = False
        log.info("attacking %d targets at size %d (%s)", len(chosen), size, ", ".join(settings.kind))
        fallen = np.zeros(0, dtype=bool)
        if len(chosen):
            fallen = attack(
                study.new_model(), study.data, study.seeded_defence, budget=budget, kind=settings.kind,
                targets=certificate.row[chosen], seed=settings.seed,
            ).succeeded  # fmt: skip
        rounds.append(_round(size, correct, total, holds, chosen, fallen))
    return tuple(rounds)


def _origin(folder: RunFolder) -> dict[str, Any]:
    """Returns data, model, defence and seed as the rows of the certificate name them; empty if there are none."""
    for row in folder.rows("certify"):
        return {name: row[name] for name in ("data", "digest", "seed", "model", "division")}
    return {}


def _sample(free: BoolArray, holds: BoolArray, wanted: int, random: np.random.Generator) -> IntArray:
    """Positions of targets to attack: half of them certified, and more if there are too few of the others."""
    proved, others = (random.permutation(np.flatnonzero(free & part)) for part in (holds, ~holds))
    half = wanted // 2
    num_proved, num_others = max(half, wanted - len(others)), max(wanted - half, wanted - len(proved))
    return np.sort(np.concatenate([proved[:num_proved], others[:num_others]]))


def _round(size: int, correct: BoolArray, total: int, holds: BoolArray, chosen: IntArray, fallen: BoolArray) -> Round:
    """What came of one size; shares are of ``total`` targets, those that can be correct."""
    proved = holds[chosen]
    fallen_proved, fallen_others, others = (int(part.sum()) for part in (fallen & proved, fallen & ~proved, ~proved))
    certified, uncertified = float((correct & holds).sum() / total), float((correct & ~holds).sum() / total)
    survived = uncertified * (1 - fallen_others / others) if others else uncertified  # estimated from the sample
    left = certified - fallen_proved / total + survived
    return Round(size, certified, left, int(proved.sum()), fallen_proved, others, fallen_others)


def _rows(
    origin: dict[str, Any], certificate: Certificate, settings: AttackSettings, rounds: Sequence[Round]
) -> list[dict[str, Any]]:
    """The rounds as rows of results: what was left, and how many certified labels fell."""
    what = ", ".join(settings.kind)
    if settings.sample != "all":
        what += f", estimated from {settings.sample} targets at each size"
    # The report draws accuracy under attack over the radius, of which an edge costs one step in every division. Other
    # attacks get a measure of their own, which is not drawn.
    plain = settings.vary in ("add_edges", "delete_edges") and not settings.also and certificate.truth is not None
    measure = f"{UNDER_ATTACK} ({what})" if plain else f"share kept under attack, {settings.vary} ({what})"
    values = [(measure, each.size, each.left) for each in rounds]
    values += [("certified labels that fell", each.size, each.fallen_certified) for each in rounds]
    return [{**origin, "measure": measure, "size": size, "value": value} for measure, size, value in values]

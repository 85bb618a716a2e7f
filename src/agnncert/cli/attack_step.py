"""``agnncert attack RUN``: attacks the targets of a run's certificate, within what is proved and beyond."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.attacks.api import KINDS, attack
from agnncert.certificates.budget import COUNTS, Budget
from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.certificates.voting_rule import VotingRule
from agnncert.cli.folder import RunFolder, find_run
from agnncert.cli.inputs import row_origin, study_of_run, who_votes
from agnncert.cli.report_step import UNDER_ATTACK, report_run
from agnncert.cli.settings import CertifySettings, numbers, require_one_of
from agnncert.comparison.runner import Study
from agnncert.divisions.named import parse_division
from agnncert.engine.digest import model_digest
from agnncert.errors import BudgetError, SettingsError, did_you_mean
from agnncert.proving.certificate import Certificate, load_certificate
from agnncert.proving.evidence import BallotEvidence

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AttackSettings:
    """How to attack.

    Attributes:
        kind: Names of attacks; the best of them counts for each target.
        vary: The field of the budget that grows.
        sizes: Its values, as text such as ``"1,5,20"``. Defaults to sizes around what is certified.
        also: The other fields of the budget.
        sample: How many targets to attack at each size, half of them certified there; ``"all"`` for all correct ones.
        seed: Seed of the sample and of the attacks.
    """

    kind: tuple[str, ...] = ("greedy",)
    vary: str = "add_edges"
    sizes: str = ""
    also: Mapping[str, Any] = field(default_factory=dict)
    sample: str = "50"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in self.kind:
            require_one_of("attack", name, KINDS)
        if self.vary not in COUNTS:
            raise BudgetError(f'cannot vary "{self.vary}": {did_you_mean(self.vary, COUNTS)}')
        numbers("sizes", self.sizes)
        if self.sample != "all" and not (self.sample.isdecimal() and int(self.sample)):
            raise SettingsError(f"sample={self.sample}: expected a whole number from 1 on, or all.")
        self.budget(0)

    @property
    def sample_size(self) -> int | None:
        """How many targets to attack at each size; None for all."""
        return None if self.sample == "all" else int(self.sample)

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
    """The outcome at one size.

    Attributes:
        size: Value of the field that grows.
        certified: Share of all targets that are correct and certified.
        left: Share of all targets that are correct after the attack; estimated if only a sample was attacked.
        attacked_certified: Certified targets that were attacked.
        fallen_certified: How many of them changed their label; anything but 0 refutes the certificate.
        attacked_others: Correct targets that are not certified and were attacked.
        fallen_others: How many of them changed their label.
    """

    size: int
    certified: float
    left: float
    attacked_certified: int
    fallen_certified: int
    attacked_others: int
    fallen_others: int


@dataclass(frozen=True)
class Attacked:
    """A run after the attacks: a round for each size, and the new report."""

    folder: RunFolder
    rounds: tuple[Round, ...]
    page: Path

    @property
    def violations(self) -> int:
        """Certified labels that fell; there must be none."""
        return sum(each.fallen_certified for each in self.rounds)


def attack_run(
    source: str | Path, settings: AttackSettings, root: str | None = None, model: str | None = None
) -> Attacked:
    """Attacks the targets of a run's certificate and adds the outcome to the run.

    Args:
        source: The folder of a certified run.
        settings: How to attack.
        root: Folder that holds the datasets.
        model: The run's model; required if it is code.
    """
    folder = find_run(source)
    if folder is None or not folder.certificate.is_file():
        raise SettingsError(f"{source} is not the folder of a certified run: agnncert certify makes one.")
    with folder.recording():
        named, study = study_of_run(folder, CertifySettings(root=root, model=model))
        certificate = load_certificate(folder.certificate)
        voter = who_votes(folder, study.new_model(), study.data)
        if model_digest(voter) != certificate.claim.digests.get("model"):
            raise SettingsError(f"the model in {folder} is not the certified one: certify it again first.")
        # What was certified counts, which need not be what the run began with.
        study = replace(study, defence=parse_division(certificate.claim.division), model=voter)
        settings = replace(settings, sizes=settings.sizes or ",".join(map(str, usual_sizes(certificate))))
        folder.begin("attack", settings.table(), folder.data)
        rounds = _rounds(study, certificate, settings)
        origin = row_origin(named, study.defence, folder.data, _vote_of(certificate))
        folder.put_rows("attack", _rows(origin, certificate, settings, rounds))
        page = report_run(folder.path).page
    return Attacked(folder, rounds, page)


def usual_sizes(certificate: Certificate) -> tuple[int, ...]:
    """Half of the median radius, the median radius, one more than any radius, and twice that."""
    middle, top = int(np.median(certificate.radius)), int(certificate.radius.max(initial=0))
    return tuple(sorted({max(1, middle // 2), max(1, middle), top + 1, 2 * (top + 1)}))


def _rounds(study: Study, certificate: Certificate, settings: AttackSettings) -> tuple[Round, ...]:
    certified = {size: certificate.holds_against(settings.budget(size)) for size in numbers("sizes", settings.sizes)}
    correct, total = np.ones(certificate.num_targets, dtype=bool), certificate.num_targets
    if certificate.truth is not None:
        correct, total = certificate.label == certificate.truth, int(certificate.labelled.sum())
    chosen = _sample(correct, certified, settings)
    fallen = _attack(study, certificate, chosen, settings)
    return tuple(_round(size, correct, total, certified[size], chosen[size], fallen[size]) for size in certified)


def _vote_of(certificate: Certificate) -> VotingRule | None:
    """The vote of a certificate; None if it is the usual one, about which results say nothing."""
    evidence = certificate.evidence
    if not isinstance(evidence, BallotEvidence):
        return None
    return None if evidence.vote == VotingRule().under(evidence.rule, evidence.votes.num_classes) else evidence.vote


def _sample(correct: BoolArray, certified: dict[int, BoolArray], settings: AttackSettings) -> dict[int, IntArray]:
    """Positions of the targets to attack at each size. In a sample, no target is attacked at two sizes."""
    if settings.sample_size is None:
        return dict.fromkeys(certified, np.flatnonzero(correct))
    random = np.random.default_rng(settings.seed)
    free, chosen = correct.copy(), {}
    for size, holds in certified.items():
        proved, others = (random.permutation(np.flatnonzero(free & part)) for part in (holds, ~holds))
        wanted, half = settings.sample_size, settings.sample_size // 2  # half of each; more if there are too few of one
        num_proved, num_others = max(half, wanted - len(others)), max(wanted - half, wanted - len(proved))
        chosen[size] = np.sort(np.concatenate([proved[:num_proved], others[:num_others]]))
        free[chosen[size]] = False
    return chosen


def _attack(
    study: Study, certificate: Certificate, chosen: dict[int, IntArray], settings: AttackSettings
) -> dict[int, BoolArray]:
    """Whether each chosen target fell, by size.

    One call attacks the targets of all sizes, unless a target may occur at two sizes or the attack takes one budget.
    """
    one_by_one = settings.sample_size is None or "hubs" in settings.kind
    fallen: dict[int, BoolArray] = {}
    for sizes in [[size] for size in chosen] if one_by_one else [list(chosen)]:
        targets = certificate.row[np.concatenate([chosen[size] for size in sizes])]
        budgets = [settings.budget(size) for size in sizes for _ in chosen[size]]
        log.info("attacking %d targets (%s)", len(targets), ", ".join(settings.kind))
        succeeded = np.zeros(0, dtype=bool)
        if len(targets):
            how: dict[str, Any] = {"kind": settings.kind, "targets": targets, "seed": settings.seed}
            how["rule"] = certificate.vote
            succeeded = attack(study.new_model(), study.data, study.division, budget=budgets, **how).succeeded
        ends = np.cumsum([len(chosen[size]) for size in sizes])
        fallen |= dict(zip(sizes, np.split(succeeded, ends[:-1]), strict=True))
    return fallen


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
    if settings.sample_size is not None:
        what += f", {settings.sample} targets at each size"
    # The report draws accuracy under attack over the radius, of which an edge costs one step in every division. Other
    # attacks get a measure of their own, which is not drawn.
    plain = settings.vary in ("add_edges", "delete_edges") and not settings.also and certificate.truth is not None
    measure = f"{UNDER_ATTACK} ({what})" if plain else f"share kept under attack, {settings.vary} ({what})"
    values = [(measure, each.size, each.left) for each in rounds]
    values += [("certified labels that fell", each.size, each.fallen_certified) for each in rounds]
    return [{**origin, "measure": measure, "size": size, "value": value} for measure, size, value in values]

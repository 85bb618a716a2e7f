"""Statements from samples, derived by other ways, are the ones that the library makes; any other one is refused."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from agnncert.certificates.budget import COUNTS, Budget
from agnncert.errors import CertificateError
from agnncert.proving.certificate import Certificate
from agnncert.storage import write_sealed
from agnncert.verdict import verify
from agnncert_peers import recount_samples
from agnncert_peers.bounds import class_bounds, lower_bound
from agnncert_peers.deletion_noise import TESTS, DeletionNoise
from agnncert_peers.flip_noise import FlipNoise
from agnncert_peers.interception_noise import InterceptionNoise, Sources
from agnncert_peers.recount_samples import (
    MARGIN,
    MOST_SAMPLES,
    Bounds,
    Samples,
    _binomial,
    _least_probability,
    bound_classes,
    check_samples,
    holds,
    intercepted,
    right_radius,
)
from agnncert_peers.samples import EACH, SCOPES, TOGETHER, SampleEvidence, sample_claim
from tests.soundness.forger.hostile import open_up

FLIPS = {
    "one rate": FlipNoise(0.2, 0.2),
    "hardly any noise": FlipNoise(1e-6, 1e-6),
    "almost only noise": FlipNoise(0.49, 0.49),
    "two rates": FlipNoise(0.01, 0.6),
    "additions only": FlipNoise(0.3, 0.0),
    "deletions only": FlipNoise(0.0, 0.4),
    "target row": FlipNoise(0.2, 0.2, where="target row"),
    "features": FlipNoise(p_add_feature=0.2, p_delete_feature=0.2, num_features=2),
    "features of two rates": FlipNoise(p_add_feature=0.05, p_delete_feature=0.3, num_features=3),
    "edges and features": FlipNoise(0.05, 0.3, 0.1, 0.0, num_features=2),
    "edges and features alike": FlipNoise(0.1, 0.1, 0.1, 0.1, num_features=1),
}
DELETIONS = {
    f"{test}, {p_edge}, {p_node}, {tau}": DeletionNoise(p_edge, p_node, test, tau)
    for test in TESTS
    for p_edge, p_node, tau in [
        (0.8, 0.9, 5),
        (0.0, 0.5, 1),
        (0.7, 0.0, 2),
        (0.8, 0.9, 0),
        (0.8, 0.9, math.inf),
        (0.9999, 0.9999, 3),
    ]
}
INTERCEPTIONS = {
    "interception": InterceptionNoise(0.3, 0.9, 2),
    "interception of edges alone": InterceptionNoise(0.9, 0.0, 3),
    "interception of features alone": InterceptionNoise(0.0, 0.95, 1),
    "hardly any interception": InterceptionNoise(1e-9, 1e-9, 1),
    "almost only interception": InterceptionNoise(0.999, 0.999, 4),
}
NOISES = FLIPS | DELETIONS | INTERCEPTIONS


@pytest.fixture(scope="module", autouse=True)
def bounds_are_solved_once():
    """A file is verified after each of many alterations, few of which touch the counts that its bounds come from."""
    solve, known = _least_probability, {}

    def solved(successes, trials, alpha):
        key = (successes.tobytes(), successes.dtype, trials, alpha)
        if key not in known:
            known[key] = solve(successes, trials, alpha)
        return known[key].copy()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recount_samples, "_least_probability", solved)
        yield


def sources_for(noise, num_targets, rng) -> dict:
    """Some paths to each target, in any order, if the noise is about them."""
    if not isinstance(noise, InterceptionNoise):
        return {}
    start = np.concatenate([[0], np.cumsum(rng.integers(0, 6, num_targets))]).astype(np.int64)
    paths = rng.choice([0, 0, 1, 2, 40], (start[-1], noise.hops)).astype(np.int64)
    paths[paths.sum(axis=1) == 0, -1] = 1
    return {"sources": Sources(start, paths)}


def random_samples(rng, noise, num_targets=12, **more) -> SampleEvidence:
    """Counts of every shape: clear, undecided, unanimous; one class or several; few samples or many."""
    num_classes, trials = int(rng.integers(1, 6)), int(rng.choice([1, 20, 300, 10_000]))
    chances = rng.dirichlet(np.full(num_classes, 0.15), size=num_targets)
    selection, estimation = (rng.multinomial(size, chances).astype(np.int64) for size in (10, trials))
    alpha = float(rng.choice([0.9, 0.5, 0.05, 0.001, 1e-8]))
    more |= sources_for(noise, num_targets, rng)
    return SampleEvidence("made up", noise, selection, estimation, alpha, **more)


def random_budget(rng) -> Budget:
    counts = {name: float(rng.choice([1, 2, 3, 9, math.inf])) for name in rng.choice(COUNTS, int(rng.integers(3)))}
    return Budget(**counts, target_features=bool(rng.random() < 0.1))


@pytest.mark.parametrize("trials", [1, 2, 57, 1000, 100_000])
@pytest.mark.parametrize("alpha", [0.5, 0.2, 0.01, 1e-9, 1e-30])
def test_least_probabilities_solve_the_tail_equation_and_are_those_of_the_library(trials, alpha):
    rng = np.random.default_rng(trials)
    successes = np.unique([0, 1, trials - 1, trials, *rng.integers(0, trials + 1, 20)])
    least = _least_probability(successes, trials, alpha)
    assert np.abs(least - lower_bound(successes, trials, alpha)).max() < 3e-13
    some = least > MARGIN
    assert binom.sf(successes[some] - 1, trials, least[some] + MARGIN) == pytest.approx(alpha, rel=1e-8)
    assert least[0] == 0


def test_bounds_of_very_many_samples_are_bounds_on_both_sides():
    """An inverse beta function alone is too high here, by more than the margin."""
    trials, alpha = 10**7, 1e-30
    successes = np.unique(np.random.default_rng(0).integers(0, trials + 1, 3000))
    least, proved = _least_probability(successes, trials, alpha), lower_bound(successes, trials, alpha)
    assert (binom.sf(successes - 1, trials, proved) <= alpha * (1 + 1e-9)).all()
    assert np.abs(least - proved).max() < MARGIN


@pytest.mark.parametrize("p", [0.0, 1e-9, 0.2, 0.5, 0.999, 1.0])
@pytest.mark.parametrize("trials", [0, 1, 7, 300])
def test_binomial_probabilities_agree_with_exact_fractions(trials, p):
    exact = [math.comb(trials, k) * Fraction(p) ** k * (1 - Fraction(p)) ** (trials - k) for k in range(trials + 1)]
    assert _binomial(trials, p) == pytest.approx([float(x) for x in exact], abs=1e-14)


@pytest.mark.parametrize("name", NOISES)
def test_every_statement_follows_and_its_neighbours_do_not(name):
    noise, rng = NOISES[name], np.random.default_rng(len(name))
    stored = noise.settings()
    for _ in range(4):
        evidence = random_samples(rng, noise)
        label, radius = evidence.label_and_radius()
        sources = intercepted(stored, evidence.tensors())
        samples = Samples(evidence.selection, evidence.estimation, stored, evidence.alpha, True, sources)
        bounds = bound_classes(samples, evidence.alpha)
        assert bounds.label.tolist() == label.tolist()
        assert right_radius(stored, bounds, radius).all()
        below_any_end = radius < 2**31 - 1  # a search that ended there may have ended early
        assert not (right_radius(stored, bounds, radius - 1) & below_any_end).any()
        assert not (right_radius(stored, bounds, radius + 1) & below_any_end).any()
        assert not right_radius(stored, bounds, np.full(len(radius), 2**62)).any()
        for budget in (Budget(), *(random_budget(rng) for _ in range(12))):
            assert holds(stored, bounds, budget).tolist() == evidence.holds(budget).tolist(), budget


def test_the_cases_above_certify_something():
    rng, noise = np.random.default_rng(0), FLIPS["one rate"]
    radii = np.concatenate([random_samples(rng, noise).label_and_radius()[1] for _ in range(20)])
    assert {-1, 0, 1} <= set(radii.tolist())
    assert radii.max() >= 4


def test_ties_are_decided_as_the_library_decides_them():
    """One sample at alpha = 1/2 leaves exactly even chances; thresholds of one flip are met exactly at 7/8."""
    one = np.array([[1, 0]])
    samples = Samples(one, one, {}, 0.5, True, None)
    assert bound_classes(samples, 0.5).top == class_bounds(one, one, 0.5).top
    assert not bound_classes(samples, 0.5).decided.any()
    even = Bounds(np.zeros(1, dtype=int), np.array([0.875]), np.array([0.125]))
    assert not holds(FLIPS["one rate"].settings(), even, Budget(add_edges=1)).any()
    assert right_radius(FLIPS["one rate"].settings(), even, np.array([0])).all()


def test_all_mixes_of_the_largest_size_are_looked_at_when_rates_differ():
    """Additions alone would allow more, deletions alone less, or the other way round."""
    for noise in (FlipNoise(0.01, 0.4), FlipNoise(0.4, 0.01)):
        sure = Bounds(np.zeros(1, dtype=int), np.array([0.9995]), np.array([0.0005]))
        (radius,) = [r for r in range(101) if right_radius(noise.settings(), sure, np.array([r])).all()]
        held = [
            holds(noise.settings(), sure, Budget(add_edges=a, delete_edges=radius + 1 - a)) for a in range(radius + 2)
        ]
        assert {bool(one[0]) for one in held} == {True, False}


KINDS = ["one rate", "two rates", "edges and features", "B2, 0.8, 0.9, 5", "sharp, 0.8, 0.9, 5", "interception"]


@pytest.fixture(scope="module", params=KINDS)
def honest(request, tmp_path_factory):
    """The bytes of a file that verifies."""
    rng = np.random.default_rng(1)
    chances = np.array([[0.97, 0.02, 0.01], [0.02, 0.9, 0.08], [0.4, 0.35, 0.25], [0.001, 0.0, 0.999]])
    counts = [np.array([rng.multinomial(size, chance) for chance in chances]) for size in (50, 5000)]
    noise = NOISES[request.param]
    sources = Sources(np.arange(0, 61, 15), np.tile([[1, 0], [1, 2], [0, 1]], (20, 1)))
    paths = {"sources": sources} if isinstance(noise, InterceptionNoise) else {}
    evidence = SampleEvidence("made up", noise, *counts, alpha=0.01, scope=EACH, **paths)
    budgets = [Budget(add_edges=1), Budget(delete_edges=1), Budget(inject_nodes=3, edges_per_injected=2), Budget()]
    path = tmp_path_factory.mktemp("honest") / "samples.cert"
    Certificate(sample_claim(evidence), evidence, np.arange(4)).save(path, budgets=budgets)
    assert verify(path).holds, verify(path)
    return path.read_bytes()


@pytest.fixture
def file(honest, tmp_path):
    (tmp_path / "samples.cert").write_bytes(honest)
    return tmp_path / "samples.cert"


@pytest.mark.parametrize("name", ["label", "radius", "new_neighbours", "holds", "target", "row"])
def test_any_altered_statement_is_refused_even_if_sealed_again(file, name):
    header, arrays = open_up(file)
    for place in np.ndindex(arrays[name].shape):
        array = arrays[name].copy()
        if array.dtype == bool:
            array[place] ^= True
        elif name in ("target", "row"):
            array[place] = array[place[0] - 1]
        else:
            array[place] += 1
        write_sealed(file, header, arrays | {name: array})
        assert any("follow" in reason or "twice" in reason for reason in verify(file).reasons)


def test_an_altered_number_of_broken_targets_is_refused_even_if_sealed_again(file):
    header, arrays = open_up(file)
    for i, statement in enumerate(header["statements"]):
        for change in (-1, 1):
            odd = statement | {"broken_at_most": statement["broken_at_most"] + change}
            statements = [odd if j == i else other for j, other in enumerate(header["statements"])]
            write_sealed(file, header | {"statements": statements}, arrays)
            assert any("can break does not follow" in reason for reason in verify(file).reasons)


def test_a_smaller_error_probability_or_stronger_noise_is_refused_even_if_sealed_again(file):
    header, arrays = open_up(file)
    settings, claim = header["settings"], header["claim"]
    stronger = {"p_add": 0.3, "p_delete": 0.45, "p_edge": 0.97, "p_node": 0.97, "p_ablate": 0.99}
    noise = {name: stronger.get(name, value) if value else value for name, value in settings["noise"].items()}
    write_sealed(file, header | {"settings": settings | {"noise": noise}}, arrays)
    assert any("radius" in reason for reason in verify(file).reasons)
    forged = {"settings": settings | {"alpha": 1e-90}, "claim": claim | {"alpha": 1e-90}}
    write_sealed(file, header | forged, arrays)
    assert any("radius" in reason for reason in verify(file).reasons)
    forged = {"settings": settings | {"task": "graph"}}
    write_sealed(file, header | forged, arrays)
    assert any('"task"' in reason or "whole graphs" in reason for reason in verify(file).reasons)


def test_statements_about_each_target_do_not_pass_for_statements_about_all_together(tmp_path):
    """400 targets share ``alpha``: 4435 of 5000 samples then no longer withstand one flip."""
    counts = np.tile([4435, 565], (400, 1))
    evidence = SampleEvidence("made up", FLIPS["one rate"], counts, counts, alpha=0.01, scope=EACH)
    assert set(evidence.label_and_radius()[1].tolist()) == {1}
    path = tmp_path / "a.cert"
    Certificate(sample_claim(evidence), evidence, np.arange(400)).save(path, budgets=[Budget(add_edges=1)])
    header, arrays = open_up(path)
    assert header["statements"][0]["broken_at_most"] == 400  # speaks about all together already
    settings, claim = header["settings"] | {"scope": TOGETHER}, header["claim"] | {"alpha_scope": TOGETHER}
    write_sealed(path, header | {"settings": settings, "claim": claim}, arrays)
    reasons = " ".join(verify(path).reasons)
    assert "the radius of 400 targets" in reasons
    assert "the answer for Budget(add_edges=1) of 400 targets" in reasons


@pytest.mark.parametrize(
    ("field", "odd"),
    {
        "task": "graph",
        "method": "other",
        "division": "EdgeCentric(T=3)",
        "num_groups": 7,
        "guarantee": "deterministic",
        "alpha": 0.001,
        "alpha_scope": TOGETHER,
        "tolerance": 0.5,
        "unit": "any change",
        "covers": ["Anything at all."],
        "assumes": [],
        "not_proved": [],
    }.items(),
)
def test_an_altered_claim_is_refused_even_if_sealed_again(file, field, odd):
    header, arrays = open_up(file)
    assert header["claim"][field] != odd
    write_sealed(file, header | {"claim": header["claim"] | {field: odd}}, arrays)
    assert any(f'"{field}" is not what its evidence allows' in reason for reason in verify(file).reasons)


def test_the_unsound_test_cannot_be_called_by_a_better_name(tmp_path):
    evidence = random_samples(np.random.default_rng(0), NOISES["legacy-unsound, 0.8, 0.9, 5"])
    path = tmp_path / "a.cert"
    Certificate(sample_claim(evidence), evidence, np.arange(12)).save(path)
    header, arrays = open_up(path)
    assert header["claim"]["method"] == "made up (legacy-unsound)"
    write_sealed(path, header | {"claim": header["claim"] | {"method": "made up"}}, arrays)
    assert any('"method"' in reason for reason in verify(path).reasons)


@pytest.mark.parametrize("name", ["selection", "estimation"])
def test_other_counts_do_not_support_the_statements(file, name):
    """The label rests on the selection counts, everything else on the estimation counts."""
    header, arrays = open_up(file)
    turned = np.roll(arrays[f"evidence.{name}"], 1, axis=1)
    write_sealed(file, header, arrays | {f"evidence.{name}": turned})
    wanted = "label" if name == "selection" else "radius"
    assert any(f"the {wanted} of" in reason for reason in verify(file).reasons)


def test_noise_that_says_nothing_about_graphs_is_refused_there(tmp_path):
    """A readout sees injected nodes without edges; and a graph has no row of its own."""
    for name in ("B2, 0.8, 0.9, 5", "target row", "interception"):
        evidence = random_samples(np.random.default_rng(0), NOISES[name], task="graph")
        Certificate(sample_claim(evidence), evidence, np.arange(12)).save(tmp_path / "a.cert")
        assert any("whole graph" in reason for reason in verify(tmp_path / "a.cert").reasons)


NOT_A_PROBABILITY = [None, True, -0.1, 1, math.nan, 1e300, 10**400, "x", [], {}]
NOT_A_WORD = [None, True, 0, 1.5, "x", [], {}]
NOT_A_NUMBER_OF_THINGS = [None, True, -1, 1.5, math.nan, math.inf, 1e300, 10**400, "x", [], {}]
SENSELESS = {
    "method": NOT_A_WORD[:4] + NOT_A_WORD[5:],
    "alpha": [0, 5e-324, *NOT_A_PROBABILITY],
    "scope": NOT_A_WORD,
    "task": NOT_A_WORD,
    "seed": NOT_A_NUMBER_OF_THINGS[:6] + NOT_A_NUMBER_OF_THINGS[8:],
    "noise": [*NOT_A_WORD, {"kind": "snow"}, {"kind": "flips"}, {"kind": ["flips"]}],
    "kind": NOT_A_WORD,
    **dict.fromkeys(("p_add", "p_delete", "p_add_feature", "p_delete_feature"), NOT_A_PROBABILITY),
    **dict.fromkeys(("p_edge", "p_node", "p_ablate"), NOT_A_PROBABILITY),
    "hops": [0, 1, 2.0, 17, *NOT_A_NUMBER_OF_THINGS],
    "num_features": NOT_A_NUMBER_OF_THINGS,
    "edges_per_injected": NOT_A_NUMBER_OF_THINGS,
    "where": NOT_A_WORD,
    "test": NOT_A_WORD,
}


def test_senseless_settings_are_refused_with_a_reason(file):
    header, arrays = open_up(file)
    settings, samples = header["settings"], evidence_of(arrays)
    check_samples(samples, settings)

    def refused(changed):
        with pytest.raises(CertificateError, match="damaged"):
            check_samples(samples, changed)

    for name in settings:
        refused({k: v for k, v in settings.items() if k != name})
        for odd in SENSELESS[name]:
            refused(settings | {name: odd})
    for name in settings["noise"]:
        refused(settings | {"noise": {k: v for k, v in settings["noise"].items() if k != name}})
        for odd in SENSELESS[name]:
            refused(settings | {"noise": settings["noise"] | {name: odd}})
    refused(settings | {"surplus": 1})
    refused(settings | {"noise": settings["noise"] | {"surplus": 0.1}})
    rates = {name: 0 for name in settings["noise"] if name.startswith("p_")}
    refused(settings | {"noise": settings["noise"] | rates})


def evidence_of(arrays):
    return {name.removeprefix("evidence."): array for name, array in arrays.items() if name.startswith("evidence.")}


def test_senseless_counts_are_refused(file):
    header, arrays = open_up(file)
    good = evidence_of(arrays)
    for odd in (
        good["estimation"] * -1,
        good["estimation"].astype(float),
        good["estimation"][:, :, None],
        good["estimation"][:, :0],
        good["estimation"][:3],
        good["estimation"] * 0,
        good["estimation"] + np.eye(4, 3, dtype=np.int64),
        np.full((4, 3), 2**62),
        np.full((4, 3), MOST_SAMPLES),
    ):
        with pytest.raises(CertificateError, match="damaged"):
            check_samples(good | {"estimation": odd}, header["settings"])
    for name in good:
        with pytest.raises(CertificateError, match="the arrays are"):
            check_samples({k: v for k, v in good.items() if k != name}, header["settings"])


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("task", ["node", "graph"])
@pytest.mark.parametrize("num_targets", [0, 1, 9])
def test_honest_certificates_verify(task, scope, num_targets, tmp_path):
    rng = np.random.default_rng(num_targets)
    on_nodes_only = ("target row", "B1, 0.8, 0.9, inf", "legacy-unsound, 0.8, 0.9, 5", *INTERCEPTIONS)
    for name in ("one rate", "edges and features", *(on_nodes_only if task == "node" else ())):
        evidence = random_samples(rng, NOISES[name], num_targets, task=task, scope=scope)
        certificate = Certificate(sample_claim(evidence, ids="row"), evidence, np.arange(num_targets))
        certificate.save(tmp_path / "a.cert", budgets=[random_budget(rng) for _ in range(5)])
        assert verify(tmp_path / "a.cert").holds, verify(tmp_path / "a.cert")


def test_senseless_lists_of_paths_are_refused():
    noise = INTERCEPTIONS["interception"]
    counts = np.array([[9, 1], [2, 8]])
    sources = Sources(np.array([0, 1, 3]), np.array([[1, 0], [0, 2], [1, 1]]))
    evidence = SampleEvidence("made up", noise, counts, counts, 0.01, sources=sources)
    good, settings = evidence.tensors(), evidence.settings()
    check_samples(good, settings)
    for name, odd in [
        ("start", np.array([0, 3])),
        ("start", np.array([1, 1, 3])),
        ("start", np.array([0, 4, 3])),
        ("start", np.array([0, 1, 2])),
        ("start", np.array([0.0, 1.0, 3.0])),
        ("start", np.array([0, 1, 2**64 - 1], dtype=np.uint64)),
        ("paths", sources.paths[:, :1]),
        ("paths", sources.paths.astype(float)),
        ("paths", sources.paths * 0),
        ("paths", -sources.paths),
        ("paths", sources.paths[:, 0]),
    ]:
        with pytest.raises(CertificateError, match="damaged"):
            check_samples(good | {name: odd}, settings)


def test_both_probabilities_give_way_by_two_margins():
    half = np.array([0.5, 0.5])
    for lead, stays in ((3.6, False), (4.4, True)):
        top, other = 0.5 + lead / 2 * recount_samples.MARGIN, 0.5 - lead / 2 * recount_samples.MARGIN
        assert recount_samples._label_stays(half, half, np.array([top]), np.array([other])).tolist() == [stays]


def test_whole_numbers_are_those_that_a_float_holds():
    for value, whole in (
        (0, True),
        (2**53, True),
        (2**53 + 2, False),
        (-1, False),
        (1.5, False),
        (True, False),
        ("1", False),
    ):
        assert recount_samples._is_whole(value) is whole


@pytest.mark.parametrize("shape", [(3,), (3, 0), (3, 2, 2), (1, recount_samples.MOST_CLASSES + 1)], ids=str)
def test_counts_of_another_shape_are_refused_as_such(shape):
    noise = FlipNoise(p_add=0.1, p_delete=0.4)
    evidence = SampleEvidence("rs", noise, np.array([[9, 1]]), np.array([[90, 10]]), 0.01)
    counts = np.ones(shape, dtype=np.int64)
    with pytest.raises(CertificateError, match="counts are not"):
        recount_samples.check_samples({"selection": counts, "estimation": counts}, evidence.settings())

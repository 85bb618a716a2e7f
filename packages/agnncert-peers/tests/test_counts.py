"""Counts of samples: interrupted, resumed and extended runs give the counts of one run, and runs are never mixed."""

import numpy as np
import pytest

from agnncert.errors import CertificateError, SettingsError
from agnncert_peers.sample_counts import SampleCounts, check_samples, collect

KEY = {"method": "test", "graph": "abc"}


class Dice:
    """Five dice per sample; a batch is drawn as a whole, as real samplers do."""

    num_targets, num_classes, batch = 5, 6, 32

    def counts(self, rng, first, last):
        faces = rng.integers(0, 6, size=(self.batch, 5))[first:last]
        return np.stack([np.bincount(column, minlength=6) for column in faces.T])


class Interrupted(Exception):
    pass


def stop_after(samples):
    def progress(step):
        if step.done >= samples:
            raise Interrupted

    return progress


def same(a, b):
    return (a.selection == b.selection).all() and (a.estimation == b.estimation).all()


@pytest.mark.parametrize("stop", [1, 40, 100, 333, 500])
def test_an_interrupted_run_goes_on_to_the_same_counts(tmp_path, stop):
    whole = collect(Dice(), 70, 450, seed=3, key=KEY)
    file = tmp_path / "counts.safetensors"
    with pytest.raises(Interrupted):
        collect(Dice(), 70, 450, seed=3, key=KEY, checkpoint=file, progress=stop_after(stop))
    assert 0 < SampleCounts.load(file).selected <= 70
    assert same(collect(Dice(), 70, 450, seed=3, key=KEY, checkpoint=file), whole)


def test_a_run_extended_by_more_samples_has_the_counts_of_a_longer_run(tmp_path):
    file = tmp_path / "deep" / "counts.safetensors"
    for n in (1, 31, 32, 100, 257):
        collect(Dice(), 20, n, seed=3, key=KEY, checkpoint=file)
    assert same(SampleCounts.load(file), collect(Dice(), 20, 257, seed=3, key=KEY))
    assert [path.name for path in file.parent.iterdir()] == ["counts.safetensors"]


def test_numbers_of_numpy_will_do(tmp_path):
    counts = collect(Dice(), np.int64(20), np.int32(30), np.int64(3), key=KEY, checkpoint=tmp_path / "counts")
    assert same(SampleCounts.load(tmp_path / "counts"), counts)
    assert same(collect(Dice(), 20, 30, seed=3, key=KEY), counts)


def test_selection_and_estimation_use_different_samples():
    counts = collect(Dice(), 64, 64, seed=3, key=KEY)
    assert not (counts.selection == counts.estimation).all()
    assert (counts.selection.sum(axis=1) == 64).all()


def test_seeds_give_different_counts_and_the_same_seed_the_same():
    runs = [collect(Dice(), 50, 50, seed=seed, key=KEY) for seed in (1, 2, 1)]
    assert same(runs[0], runs[2])
    assert not same(runs[0], runs[1])


def test_progress_tells_samples_done_and_wanted():
    steps = []
    collect(Dice(), 40, 50, seed=0, key=KEY, progress=lambda step: steps.append((step.done, step.total)))
    assert steps == [(32, 90), (40, 90), (72, 90), (90, 90)]


@pytest.mark.parametrize(
    ("seed", "key", "named"),
    [(4, KEY, "seed"), (3, {**KEY, "graph": "xyz"}, "graph"), (3, {"method": "test"}, "graph")],
)
def test_samples_of_another_run_are_not_mixed_in(tmp_path, seed, key, named):
    collect(Dice(), 10, 10, seed=3, key=KEY, checkpoint=tmp_path / "counts")
    with pytest.raises(SettingsError, match=f"another run: {named} differ"):
        collect(Dice(), 10, 10, seed=seed, key=key, checkpoint=tmp_path / "counts")


def test_fewer_samples_than_counted_cannot_be_asked_for(tmp_path):
    collect(Dice(), 10, 100, seed=3, key=KEY, checkpoint=tmp_path / "counts")
    with pytest.raises(SettingsError, match="already holds 10 \\+ 100"):
        collect(Dice(), 10, 99, seed=3, key=KEY, checkpoint=tmp_path / "counts")


def test_a_damaged_file_is_refused(tmp_path):
    (tmp_path / "counts").write_bytes(b"not a file of ours")
    with pytest.raises(CertificateError, match="does not hold sample counts"):
        collect(Dice(), 10, 10, seed=3, key=KEY, checkpoint=tmp_path / "counts")


@pytest.mark.parametrize(
    ("selection", "samples", "seed", "message"),
    [
        (0, 10, 0, "selection=0"),
        (10, 0, 0, "samples=0"),
        (10, 2.5, 0, "samples=2.5"),
        (True, 10, 0, "selection=True"),
        (10, 10, -1, "seed=-1"),
        (10, 10, 0.5, "seed"),
    ],
)
def test_senseless_numbers_of_samples_are_refused(selection, samples, seed, message):
    with pytest.raises(SettingsError, match=message):
        check_samples(selection, samples, seed)

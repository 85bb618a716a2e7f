"""Does anything that is appended lower a flag? The whole way: graph, fit, threshold, certify, attack, certify anew."""

import numpy as np
import pytest

import agnncert as ac
from tests.support.append_graphs import appended, graph_of, payments, rows_of

ACCOUNTS = 120
NEW = 4
ROUNDS = 12


def fitted(threat):
    """A graph of payments, the model with a threshold, and who is flagged in it."""
    data = payments(seed=3, accounts=ACCOUNTS)
    defence = ac.AppendOnly(threat=threat, trees=40, ensembles=1, deletions=1)
    model = ac.fit(None, data, defence, seed=3)
    point = ac.choose_threshold(model, data, defence, false_positive_rate=0.25)
    certificate = ac.certify(point.model, data, point, data.test_mask)
    assert 4 < (certificate.label == 1).sum() < certificate.num_targets
    return data, point, certificate


def attacks(random, data, threat, keeps_promise=True):
    """Yields rows that the threat allows against each of some targets: to and from new accounts, hubs and strangers."""
    old = {(payer, payee) for payer, payee, _ in rows_of(data)}
    targets = np.flatnonzero(data.test_mask.numpy())
    hubs = np.argsort(-np.bincount(data.edge_index[1].numpy(), minlength=ACCOUNTS))[:5]
    for number in range(ROUNDS):
        payers = {payer for payer, payee in old if payee in targets} if threat == "ledger" and keeps_promise else set()
        new = []
        for _ in range(40 * (1 + number % 3)):
            target = int(random.choice(targets))
            other = int(random.choice([random.integers(ACCOUNTS), *hubs[:2], ACCOUNTS + random.integers(NEW)]))
            pair = (target, other) if random.random() < 0.6 else (other, target)
            amount = float(random.choice([1, 3, 210, 10_000, random.integers(1, 500)]))
            is_repeated = threat == "fresh" and pair in old
            if pair[0] != pair[1] and pair[0] not in payers and not is_repeated:
                new.append((*pair, amount))
        yield dict.fromkeys(new) if threat != "fresh" else {row[:2]: row for row in new}.values()


def fallen(threat, seed, keeps_promise=True):
    """How many flags fell, and how many flags were attacked."""
    data, point, certificate = fitted(threat)
    flagged = certificate.label == 1
    fell = tried = 0
    for new in attacks(np.random.default_rng(seed), data, threat, keeps_promise):
        after = point.defence.labels(point.model, appended(data, new, NEW), certificate.row)
        fell += int((flagged & (after != 1)).sum())
        tried += int(flagged.sum())
    return fell, tried


@pytest.mark.parametrize("threat", ["fresh", "ledger", "grow"])
def test_no_flag_falls_whatever_the_threat_allows_to_append(threat):
    fell, tried = fallen(threat, seed=11)
    assert fell == 0
    assert tried > 40


def test_payers_who_send_more_make_scores_fall_that_rely_on_them():
    """The assumption of the threat "ledger" bears load: without it, features that it allows fall."""
    data, point, certificate = fitted("ledger")
    graph = ac.certify(point.model, data, point, data.test_mask).evidence.record.features
    lower = 0
    for new in attacks(np.random.default_rng(12), data, "ledger", keeps_promise=False):
        there = ac.certify(point.model, appended(data, new, NEW), point, certificate.row).evidence.record.features
        lower += int((there < graph).any(axis=1).sum())
    assert lower > 0


def test_scores_stay_above_their_bounds_after_a_deletion():
    data, point, certificate = fitted("fresh")
    bound = certificate.evidence.scores[1]
    random = np.random.default_rng(13)
    rows = rows_of(data)
    for _ in range(40):
        gone = rows[int(random.integers(len(rows)))][:2]
        kept = [row for row in rows if set(row[:2]) != set(gone)]
        after = appended(data, [], NEW)
        smaller = graph_of(kept, ACCOUNTS + NEW)
        after.edge_index, after.edge_attr = smaller.edge_index, smaller.edge_attr
        scores = point.defence.scores(point.model, after, certificate.row)[:, 1]
        assert (scores >= bound).all()


def exported(folder, rows, classes):
    """Tables of accounts and payments, as somebody exports them: accounts that cheat pay round sums."""
    folder.mkdir(exist_ok=True)
    accounts = "".join(f"{number},1,{'no' if y == 0 else 'yes'}\n" for number, y in enumerate(classes))
    (folder / "nodes.csv").write_text(f"id,one,label\n{accounts}")
    (folder / "edges.csv").write_text("source,target,amount\n" + "".join(f"{u},{v},{a}\n" for u, v, a in rows))
    return folder


@pytest.mark.parametrize("repeated", ["mean", "sum"])
@pytest.mark.parametrize("threat", ["ledger", "grow"])
def test_no_flag_falls_when_who_is_flagged_pays_the_same_accounts_again(tmp_path, repeated, threat):
    """A further small payment lowers the mean of a pair, and raises its sum."""
    random = np.random.default_rng(5)
    classes = (random.random(ACCOUNTS) < 0.3).astype(int)
    paid = {}
    for payer, payee in random.integers(0, ACCOUNTS, (5 * ACCOUNTS, 2)).tolist():
        paid[payer, payee] = int(random.integers(200, 220) if classes[payer] else random.integers(1, 50))
    for payer, payee in random.integers(0, ACCOUNTS, (2 * ACCOUNTS, 2)).tolist():
        if classes[payee] == 1:  # who cheats is also paid by more
            paid.setdefault(
                (payer, payee), int(random.integers(200, 220) if classes[payer] else random.integers(1, 50))
            )
    rows = [(payer, payee, amount) for (payer, payee), amount in paid.items() if payer != payee]

    def read(rows):
        folder = exported(tmp_path / "tables", rows, classes)
        return ac.load_tables(folder, classes=("no", "yes"), edge_features=["amount"], directed=True, repeated=repeated)

    data = read(rows)
    defence = ac.AppendOnly(threat=threat, positive=1, trees=30, ensembles=1)
    model = ac.fit(None, data, defence, seed=0)
    point = ac.choose_threshold(model, data, defence, false_positive_rate=0.2)
    flagged = np.flatnonzero(ac.certify(point.model, data, point, np.arange(ACCOUNTS)).label == 1)
    assert len(flagged) > 10
    fell = []
    for target in flagged[:8].tolist():
        again = [(payer, payee, 1) for payer, payee, _ in rows if payer == target for _ in range(20)]
        if point.defence.labels(point.model, read([*rows, *again]), [target])[0] != 1:
            fell.append(target)
    assert fell == []

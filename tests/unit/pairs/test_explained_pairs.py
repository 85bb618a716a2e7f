"""Explanations of pairs: they add up to the certificate, and what is named as enough changes the label."""

import pytest
import torch

import agnncert as ac
from agnncert.errors import IdError, SettingsError
from agnncert.graphs.perturbation import Perturbation
from agnncert.pairs.targets import BETWEEN
from agnncert.stacked.record import STEPS
from tests.support.pair_data import links, ratings

DEFENCES = {
    "common": ac.PairVotes(epochs=6),
    "both": ac.PairVotes(epochs=6, over="both"),
    "trusted": ac.PairVotes(epochs=6, trusted=0, directed=True, balanced=True),
}


@pytest.mark.parametrize("name", DEFENCES)
def test_votes_add_up_and_a_removal_changes_the_label_on_the_graph_without_it(name) -> None:
    data = ratings() if name == "trusted" else links()
    model = ac.fit(None, data, DEFENCES[name])
    with torch.no_grad():  # whatever was chosen on validation: votes count here
        model.use_votes.fill_(1)
        model.side_weight.fill_(0.25 if name == "both" else 0)
        scores = model.defence.scores(model, data, data.test_mask)
        votes = torch.from_numpy(scores[:, 1] - scores[:, 0]).double().median() / STEPS
        model.constant[1] -= votes - 0.3  # half of the pairs lead by less than a third of a vote, or lag
    certificate = ac.certify(model, data, model.defence, data.test_mask)
    row_of = {str(node): row for row, node in enumerate(data.node_id.tolist())}
    changed = 0
    for target in certificate.target.tolist()[:25]:
        explained = ac.explain(model, data, model.defence, target)
        assert explained.counts == tuple(certificate[target].votes.tolist())
        assert explained.label == certificate[target].label
        parts = [each.votes for each in (*explained.given, *explained.voters)]
        assert explained.total == tuple(map(sum, zip(*parts, strict=True)))
        ends = torch.tensor([[row_of[node]] for node in target.split(BETWEEN)])
        for voter in explained.voters:
            assert all(set(pair) & set(data.node_id[ends.view(-1)].tolist()) for pair in voter.pairs)
        if explained.removal is None:
            assert explained.no_removal
            continue
        changed += 1
        attacked = Perturbation(delete_edges=explained.removal.pairs).apply(data)
        label = int(model.defence.labels(model, attacked, ends)[0])
        assert label == explained.removal.label != explained.label
        assert certificate[target].max_certified("delete_edges") < len(explained.removal.pairs)
    assert changed > 2


def test_what_has_no_explanation_says_so() -> None:
    data = links()
    model = ac.fit(None, data, ac.PairVotes(epochs=2))
    for target, said in (("1000", "is no pair"), (f"1000{BETWEEN}7", "there is no node")):
        with pytest.raises(IdError, match=said):
            ac.explain(model, data, model.defence, target)
    masked = ac.fit(None, data, ac.PairVotes(epochs=2, mask="targets"))
    with pytest.raises(SettingsError, match="which other pairs are targets"):
        ac.explain(masked, data, masked.defence, f"1000{BETWEEN}1001")

"""Find bots on Twitter: train, choose an operating point, certify, attack, report and verify.

``python bots.py ROOT`` reads Cresci-15 below the folder ROOT (``agnncert datasets`` says where the file comes from).
Without ROOT the script generates accounts of the same form, so its figures say nothing about real bots.
"""

import sys

import numpy as np
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.datasets.relations import both_directions

BOT, SIZES = 1, (0, 1, 2, 3)


def generated(number: int = 900) -> Data:
    """Accounts in the form of Cresci-15: six columns of a profile, who follows whom, and 63 % bots."""
    rng = torch.Generator().manual_seed(0)
    y = (torch.rand(number, generator=rng) < 0.63).long()
    x = torch.randn(number, 6, generator=rng) + 0.5 * (2 * y[:, None] - 1)
    follows = torch.randint(0, number, (2, 12 * number), generator=rng)
    alike = (y[follows[0]] == y[follows[1]]) | (torch.rand(12 * number, generator=rng) < 0.15)
    joined = alike & (follows[1] % 3 != 0) & (follows[0] % 3 != 0)  # a third of the accounts has no edge
    ones = torch.ones(int(joined.sum()), 1)
    edge_index, edge_attr = both_directions(follows[:, joined], ones, number, reduce="max")
    data = Data(x=x, y=y, edge_index=edge_index, edge_attr=edge_attr, node_id=torch.arange(number))
    part = torch.rand(number, generator=rng)
    data.train_mask, data.val_mask, data.test_mask = part < 0.3, (part >= 0.3) & (part < 0.5), part >= 0.5
    data.class_names = ["genuine", "bot"]
    return data


data = ac.load_dataset("cresci-15", root=sys.argv[1]) if len(sys.argv) > 1 else generated()
bot = (data.y == BOT)[data.test_mask].numpy()


def report(name: str, found: np.ndarray, sure: np.ndarray) -> None:
    """Prints the share of bots that are found for sure, and the share of genuine accounts that may be accused."""
    print(f"{name:<28}{(found & sure)[bot].mean():>8.1%} found{(found | ~sure)[~bot].mean():>8.1%} accused")


# 1. Train: a score of the profile, and a bounded vote of each account that follows or is followed.
model = ac.fit(ac.build_model("mlp", data, num_layers=2), data, ac.StackedVotes(size=2), measure="balanced", epochs=60)
print("the votes of neighbours are", "used" if model.use_votes else "not used: the profile alone certifies as much")

# 2. Choose an operating point on validation accounts: at most 10 % of the genuine ones may be called bots.
model = ac.choose_threshold(model, data, model.defence, false_positive_rate=0.1, positive=BOT).model

# 3. Certify it, beside an undefended GNN, about which nothing is proved.
certificate = ac.certify(model, data, model.defence, targets=data.test_mask)
for size in SIZES:
    budget = ac.Budget(inject_nodes=size, edges_per_injected=np.inf)  # accounts that follow whom they like
    report(f"{size} fake accounts", certificate.label == BOT, certificate.holds_against(budget))
gnn = ac.fit(ac.build_model("rgcn", data, num_layers=2), data, None, epochs=60).eval()
with torch.no_grad():
    plain = gnn(data.x, data.edge_index, edge_attr=data.edge_attr).argmax(dim=1)[data.test_mask].numpy()
report("undefended GNN, no attack", plain == BOT, np.ones_like(bot))

attacked: dict[str, list[bool]] = {"within": [], "beyond": []}

# 4. Attack: join bots that were found to the accounts whose votes help them most. Within the radius nothing may flip.
votes = model.node_votes(model.own_logits(data.x), data.edge_index).detach()
helpers = torch.argsort(votes[:, BOT] - votes[:, 1 - BOT]).tolist()
for row in np.flatnonzero(bot & (certificate.label == BOT))[:20]:
    target, sure = int(certificate.row[row]), int(certificate.structure_radius[row])
    for size in (min(sure, 5), min(sure, 5) + 1):
        new = [(int(data.node_id[target]), int(data.node_id[k])) for k in helpers if k != target][:size]
        after = ac.Perturbation(add_edges=new).apply(data)
        with torch.no_grad():
            label = int(model(after.x, after.edge_index, edge_attr=after.edge_attr)[target].argmax())
        attacked["within" if size <= sure else "beyond"].append(label != BOT)
for where, flipped in attacked.items():
    print(f"{where} the certificate: {len(flipped)} attacks, {sum(flipped)} bots hidden")
assert not any(attacked["within"])

# 5. Report and hand over: a page for people, and a file that others verify.
ac.build_report(certificate, "bots.html")
certificate.save("bots.cert", issued={"by": "Trust and safety", "until": "2999-12-31"})
print(ac.verify("bots.cert", data=data, model=model))

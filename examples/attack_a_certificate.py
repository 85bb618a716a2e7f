"""Attack what a certificate promises, and then go beyond it.

Within its certified radius no label of a target may change, whatever the attack. Beyond the radius the greedy attack
changes labels, which shows how far the certified radius is from the true one.
"""

import numpy as np

import agnncert as ac

data = ac.load_dataset("digits-knn")
division = ac.NodeCentric(20)
model = ac.fit(ac.build_model("gcn", data, num_layers=2), data, division, epochs=10, lr=0.03)
certificate = ac.certify(model, data, division, targets=data.test_mask)

weakest = np.argsort(certificate.radius, kind="stable")[:20]
targets = certificate.target[weakest]
radius = certificate.radius[weakest]
print("radii of the 20 targets with the smallest ones:", radius)

for extra in (0, 1, 2, 4):
    budgets = [ac.Budget(inject_nodes=int(r) + extra, edges_per_injected=1) for r in radius]
    report = ac.attack(model, data, division, budget=budgets, targets=targets)
    print(f"radius + {extra} injected nodes: {report.succeeded.sum()} of {len(targets)} labels changed")

"""Certify what a team of agents answers when some of them lie, with one vote per neighbour.

Twelve agents answer a multiple-choice question, and a judge model decides. In a graph, the question is a node, each
agent's answer is a node with an edge to it, and each answer casts one vote. A liar who answers alone changes one node.
If agents read each other first, a liar also changes the answers of those who read him, so the same liar costs more
votes. The answers are generated here; with language models, they are what the models said.
"""

from itertools import combinations

import numpy as np
import torch
from torch_geometric.data import Data

import agnncert as ac

AGENTS, CHOICES, QUESTIONS = 12, 4, 900
rng = np.random.default_rng(0)

# Who reads whom before answering. Each set lists the answers that depend on what agent k says.
TOPOLOGIES = {
    "each answers by itself": [{k} for k in range(AGENTS)],
    "pairs that discuss": [{k, k ^ 1} for k in range(AGENTS)],
    "teams of four": [set(range(4 * (k // 4), 4 * (k // 4) + 4)) for k in range(AGENTS)],
    "a chain, each has read the one before": [set(range(k, AGENTS)) for k in range(AGENTS)],
}

# Agents differ in skill, and are more confident when they are right. The confidence may lie as well.
skill = rng.uniform(0.45, 0.9, size=AGENTS)
truth = rng.integers(CHOICES, size=QUESTIONS)
is_right = rng.random((QUESTIONS, AGENTS)) < skill
wrong = (truth[:, None] + rng.integers(1, CHOICES, size=is_right.shape)) % CHOICES
answers = np.where(is_right, truth[:, None], wrong)
confidence = np.clip(rng.normal(np.where(is_right, 0.7, 0.5), 0.15), 0, 1)


def graph(answers: np.ndarray, confidence: np.ndarray) -> Data:
    """Questions come first, then every answer, with an edge from each answer to its question."""
    question_of = np.repeat(np.arange(QUESTIONS), AGENTS)
    agent = np.tile(np.eye(AGENTS), (QUESTIONS, 1))
    sure = confidence.reshape(-1, 1)
    said = np.eye(CHOICES)[answers.reshape(-1)]
    rows = np.hstack([said, said * sure, agent, agent * sure])
    x = np.vstack([np.zeros((QUESTIONS, rows.shape[1])), rows])
    edges = np.stack([QUESTIONS + np.arange(QUESTIONS * AGENTS), question_of])
    data = Data(x=torch.tensor(x).float(), edge_index=torch.from_numpy(edges))
    data.y = torch.from_numpy(np.concatenate([truth, truth.repeat(AGENTS)]))
    names = [f"question {q}" for q in range(QUESTIONS)]
    data.node_id = np.array([*names, *(f"question {q}, agent {a}" for q in range(QUESTIONS) for a in range(AGENTS))])
    part = torch.arange(len(x))  # questions only; answers belong to no part
    data.train_mask, data.val_mask = part < 300, (part >= 300) & (part < 450)
    data.test_mask = (part >= 450) & (part < QUESTIONS)
    return data


# 1. Train the judge, and certify its decisions about new questions.
data, division = graph(answers, confidence), ac.PerNeighbour()
model = ac.fit(ac.build_model("sage", data, num_layers=1), data, division, epochs=150)
certificate = ac.certify(model, data, division, targets=data.test_mask)
asked = certificate.row
is_true = certificate.label == truth[asked]


def withstands(changed_answers: int) -> np.ndarray:
    """Tells for which questions the decision stays, whatever so many answers say. Silence is a row of zeros."""
    return certificate.holds_against(ac.Budget(change_features=changed_answers))


# 2. What k liars can do depends on who reads whom: they own every answer that depends on one of theirs.
print(f"{'right, and cannot be changed by':<40}" + "".join(f"{k} liar{'s' * (k != 1):<4}" for k in range(5)))
for name, readers in TOPOLOGIES.items():
    worst = [max(len(set().union(*liars)) for liars in combinations(readers, k)) for k in range(5)]
    print(f"{name:<40}" + "".join(f"{(is_true & withstands(owned)).mean():<9.1%}" for owned in worst))

# 3. Let agents lie for real: the k best ones agree on a wrong answer, with full confidence.
for liars in (1, 2, 3, 4):
    best = np.argsort(-skill)[:liars]
    lied, boast = answers.copy(), confidence.copy()
    lied[:, best] = (truth[:, None] + 1) % CHOICES
    boast[:, best] = 1
    after = ac.certify(model, graph(lied, boast), division, targets=data.test_mask)
    sure, changed = withstands(liars), after.label != certificate.label
    broken = (changed & sure).sum()
    print(f"{liars} lying: {changed.sum()} of {len(changed)} decisions changed, {broken} of them certified")
    assert broken == 0

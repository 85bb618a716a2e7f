"""The ways in which a certificate can be false, each with its reason."""

from tests.soundness.corpus import alterations
from tests.soundness.corpus.fault import Fault
from tests.soundness.corpus.pair_faults import PAIR_FAULTS, PAIRS

VOTES = ("edge-centric/node", "node-centric/graph")
EVERY = ("edge-centric/node", "node-centric/node", "gated/node", "edge-centric/graph", "node-centric/graph",
         "gnncert-e/node", "gnncert-n/graph", "gnncert-en/node", "custom/node", "custom/graph", "per-neighbour/node",
         "per-pair/node", "per-neighbour/graph", "per-pair/graph")  # fmt: skip
OF_NODES = ("edge-centric/node", "node-centric/node", "gated/node", "per-neighbour/node", "per-pair/node")
PER = ("per-neighbour/node", "per-pair/node", "per-neighbour/graph", "per-pair/graph")
APART = ("isolated-node-views", "isolated-edge-views")
OF_LABELS = ("labels-flips", "labels-any", "joint-flips", "joint-any")
_FOLLOWS = "does not follow from the votes"
_WORDS = "is not what its evidence allows it to say"

FAULTS = {
    "radius-too-large": Fault(
        "A radius is one larger than what the votes prove.",
        f"radius of 1 targets {_FOLLOWS}",
        alterations.radius_too_large,
        (*EVERY, *APART, *OF_LABELS),
    ),
    "radius-where-nothing-is-proved": Fault(
        "A radius of 0 is stated where votes close to a tie may decide, so that nothing is proved.",
        f"radius of 1 targets {_FOLLOWS}",
        alterations.radius_where_nothing_is_proved,
        ("node-centric/node", "gnncert-e/node"),
    ),
    "radius-too-small": Fault(
        "A radius is one smaller than what follows.",
        f"radius of 1 targets {_FOLLOWS}",
        alterations.radius_too_small,
        ("edge-centric/node", "per-pair/node"),
        understates=True,
    ),
    "another-label": Fault(
        "A label is not the class with most votes.",
        f"label of 1 targets {_FOLLOWS}",
        alterations.another_label,
        (*VOTES, *APART, *OF_LABELS, *PAIRS),
    ),
    "answer-too-good": Fault(
        "One target is said to hold against a stated budget against which it does not.",
        "answer for Budget(",
        alterations.answer_too_good,
        (*EVERY, *APART, *OF_LABELS, *PAIRS),
    ),
    "excluded-once-too-often": Fault(
        "One more target than follows is said to be safe from a label under a stated budget.",
        "gives no label",
        alterations.one_more_excluded,
        (
            "edge-centric/node",
            "node-centric/graph",
            "per-neighbour/node",
            "stacked-sum",
            "rs",
            *APART,
            *OF_LABELS,
            *PAIRS,
        ),
    ),
    "no-label-is-possible": Fault(
        "No target is said to get another label under any stated budget.",
        "gives no label",
        alterations.all_others_excluded,
        ("gated/node", "per-pair/graph", "stacked-two-levels"),
    ),
    "everything-holds": Fault(
        "All targets are said to hold against all stated budgets.",
        "answer for Budget(",
        alterations.everything_holds,
        ("node-centric/node", "per-pair/graph"),
    ),
    "answer-too-weak": Fault(
        "One target is said not to hold against a stated budget against which it does.",
        "answer for Budget(",
        alterations.answer_too_weak,
        ("gated/node",),
        understates=True,
    ),
    "too-few-broken": Fault(
        "One target less than what follows is said to break in one attacked graph.",
        "the stated number of targets",
        alterations.too_few_broken,
        OF_NODES,
    ),
    "none-broken": Fault(
        "No target is said to break, whatever the stated budget.",
        "the stated number of targets",
        alterations.none_broken,
        ("edge-centric/node", "node-centric/graph", *APART, *OF_LABELS, *PAIRS),
    ),
    "one-more-new-neighbour": Fault(
        "One new neighbour more than what follows is said to be withstood.",
        "number of new neighbours",
        alterations.one_more_neighbour,
        OF_NODES,
    ),
    "any-number-of-new-neighbours": Fault(
        "Any number of new neighbours is said to be withstood.",
        "number of new neighbours",
        alterations.any_number_of_neighbours,
        ("node-centric/node", "edge-centric/graph"),
    ),
    "structure-radius-too-large": Fault(
        "The radius against added and deleted edges and nodes is one too large.",
        f"structure radius of 1 targets {_FOLLOWS}",
        alterations.structure_radius_too_large,
        PER,
    ),
    "rounding-ignored": Fault(
        "The statements are those of votes that are all far from a tie; some of these are not.",
        "does not follow",
        alterations.rounding_ignored,
        ("edge-centric/node", "node-centric/node", "per-neighbour/node", "gnncert-en/node"),
    ),
    "ties-ignored": Fault(
        "A radius forgets that a rival with a smaller class number wins ties.",
        f"radius of 1 targets {_FOLLOWS}",
        alterations.ties_ignored,
        ("gnncert-e/node", "custom/graph"),
    ),
    "a-node-reaches-one-vote": Fault(
        "The statements count one vote for each deleted or altered node, however many it reaches.",
        "does not follow",
        alterations.a_node_reaches_one_vote,
        ("edge-centric/node", "edge-centric/graph", "per-pair/graph"),
    ),
    "second-directions-ignored": Fault(
        "The statements forget that an added edge may give an old pair its second direction.",
        "does not follow",
        alterations.second_directions_ignored,
        ("per-pair/node", "per-pair/graph"),
    ),
    "hubs-ignored": Fault(
        "The number of broken targets forgets that one node may be a neighbour of many targets.",
        "the stated number of targets",
        alterations.hubs_ignored,
        ("per-neighbour/node", "per-pair/node"),
    ),
    "prior-doubled": Fault(
        "The statements count the votes that are there from the start twice.",
        "does not follow",
        alterations.prior_doubled,
        ("edge-centric/node voted", "node-centric/node voted", "per-pair/node voted"),
    ),
    "assumption-left-out": Fault(
        "The claim leaves an assumption out.",
        f'"assumes" {_WORDS}',
        alterations.assumption_left_out,
        (*VOTES, *APART, "stacked-edge-blind"),
    ),
    "edges-at-any-time": Fault(
        "The claim says that edges may be changed before training, of a model that was trained on edges.",
        f'"assumes" {_WORDS}',
        alterations.edges_at_any_time,
        ("stacked-sum", "stacked-two-levels"),
    ),
    "covers-the-target": Fault(
        "The claim says that the target's own features may change.",
        f'"covers" {_WORDS}',
        alterations.covers_the_target,
        ("edge-centric/node", "node-centric/node"),
    ),
    "labels-called-correct": Fault(
        "The claim no longer says that labels may be wrong.",
        f'"not_proved" {_WORDS}',
        alterations.says_labels_are_correct,
        VOTES,
    ),
    "another-unit": Fault(
        "One step of the radius is said to be more than it is.",
        f'"unit" {_WORDS}',
        alterations.another_unit,
        ("edge-centric/node", "gnncert-e/node"),
    ),
    "ids-in-words-only": Fault(
        "The claim speaks of other ids than the evidence.",
        f'"ids" {_WORDS}',
        alterations.rows_in_words_only,
        ("node-centric/node",),
    ),
    "tolerance-in-words-only": Fault(
        "The claim's number for rounding is not the one in its sentences.",
        f'"assumes" {_WORDS}',
        alterations.tolerance_in_words_only,
        ("node-centric/node",),
    ),
    "deterministic": Fault(
        "Random samples are called a deterministic guarantee.",
        f'"guarantee" {_WORDS}',
        alterations.deterministic,
        ("samples",),
    ),
    "smaller-alpha": Fault(
        "The claim's error probability is smaller than that of the bounds.",
        f'"alpha" {_WORDS}',
        alterations.smaller_alpha,
        ("samples",),
    ),
    "vote-twice": Fault("One subgraph casts two votes.", "does not ascend", alterations.vote_twice, VOTES),
    "vote-for-no-class": Fault(
        "A vote is for a class that does not exist.", '"vote" has values', alterations.vote_for_no_class, VOTES
    ),
    "group-beyond-the-last": Fault(
        "A vote is of a subgraph that does not exist.",
        '"group" has values',
        alterations.group_beyond_the_last,
        ("node-centric/node",),
    ),
    "vote-not-reached": Fault(
        "A listed vote is said to be out of reach, under a rule that lists only what is reached.",
        "reached",
        alterations.vote_not_reached,
        ("edge-centric/node", "per-neighbour/node"),
    ),
    "cover-shrinks": Fault(
        "More nodes are said to reach fewer votes.",
        '"reach" decreases',
        alterations.cover_shrinks,
        ("edge-centric/node",),
    ),
    "cover-ends-early": Fault(
        "All nodes together are said to reach fewer votes than there are.",
        'last entry of each row of "reach"',
        alterations.cover_ends_early,
        ("edge-centric/graph",),
    ),
    "hubs-ascend": Fault(
        "The nodes with most targets do not come first.",
        '"targets_per_node" must descend',
        alterations.hubs_ascend,
        ("per-pair/node",),
    ),
    "hubs-of-nobody": Fault(
        "A node is listed as a neighbour of no target.",
        '"targets_per_node" must descend',
        alterations.hubs_of_nobody,
        ("per-neighbour/node",),
    ),
    "defaults-differ": Fault(
        "Empty subgraphs are said to cast one and the same vote, and do not.",
        "empty groups are said to cast",
        alterations.defaults_differ,
        ("gated/node", "edge-centric/graph"),
    ),
    "no_edge-differs": Fault(
        "The prior follows another prediction than the one that empty subgraphs cast.",
        "empty groups are said to cast the prediction without edges",
        alterations.no_edge_differs,
        ("node-centric/node voted",),
    ),
    "no_edge-flags-differ": Fault(
        "The prior follows a prediction that is close to a tie, and empty subgraphs cast it as one that is not, or the other way round.",
        "empty groups are said to cast the prediction without edges",
        alterations.no_edge_flags_differ,
        ("node-centric/node voted",),
    ),
    "stray-structure-radius": Fault(
        "A radius against structure alone is stated under a rule that has none.",
        "a radius against structure alone",
        alterations.stray_structure_radius,
        ("node-centric/node", "edge-centric/graph"),
    ),
    "no-structure-radius": Fault(
        "No radius against structure alone is stated under a rule that has one.",
        "structure alone is missing",
        alterations.no_structure_radius,
        ("per-pair/node",),
        understates=True,
    ),
    "rule-of-another-division": Fault(
        "The votes are counted by the theorem of another division.",
        "has the theorem",
        alterations.rule_of_another_division,
        ("node-centric/node", "edge-centric/graph"),
    ),
    "more-groups-than-the-division": Fault(
        "There are said to be more subgraphs than the division makes.",
        "does not have",
        alterations.more_groups_than_the_division,
        ("node-centric/node", "edge-centric/graph"),
    ),
    "a-target-twice": Fault(
        "One target is named twice.", '"target" names a target twice', alterations.a_target_twice, VOTES
    ),
    "a-row-twice": Fault(
        "One row is named twice.", '"row" names a target twice', alterations.a_row_twice, ("node-centric/node",)
    ),
    "a-negative-row": Fault(
        "A row is negative, and would be counted from the end.",
        "negative row",
        alterations.a_negative_row,
        ("node-centric/node",),
    ),
    "one-target-too-few": Fault(
        "There are votes of a target about which nothing is stated.",
        "but evidence about",
        alterations.one_target_too_few,
        ("node-centric/node",),
    ),
    "exchanged-ids": Fault(
        "Two targets bear each other's ids.",
        "id of 2 targets is not that of the graph",
        alterations.exchanged_ids,
        ("edge-centric-node", "gated-node", "rs"),
        "graph",
    ),
    "labels-called-true": Fault(
        "The labels are passed off as true classes.",
        "true class of",
        alterations.labels_called_true,
        ("edge-centric-node", "node-centric-graph", "bi-rs"),
        "graph",
    ),
    "larger-degrees": Fault(
        "Degrees are invented.", "degree of", alterations.larger_degrees, ("node-centric-node",), "graph"
    ),
    "another-graph": Fault(
        "The file speaks about another graph.",
        "the graph is not the one that was certified",
        alterations.another_graph,
        ("per-pair-node", "sparse-rs"),
        "graph",
    ),
    "rows-called-ids": Fault(
        "Row numbers are passed off as ids, so that deleted nodes would be covered.",
        'the data says by "row"',
        alterations.rows_called_ids,
        ("node-centric-node",),
        "graph",
    ),
    "a-listed-vote-left-out": Fault(
        "A subgraph in which a target has an edge is not listed, so that its vote seems to be out of reach.",
        "subgraphs in which targets have edges",
        alterations.a_listed_vote_left_out,
        ("edge-centric-node", "node-centric-node", "per-pair-node"),
        "graph",
    ),
    "a-smaller-cover": Fault(
        "A node is said to reach fewer votes than it does.",
        "subgraphs in which targets have edges",
        alterations.a_smaller_cover,
        ("edge-centric-graph", "per-pair-graph"),
        "graph",
    ),
    "fewer-hubs": Fault(
        "A node that is a neighbour of many targets is left out.",
        "subgraphs in which targets have edges",
        alterations.fewer_targets_per_node,
        ("per-pair-node",),
        "graph",
    ),
    "hidden-directions": Fault(
        "Pairs with one direction are said to have both, so that none can be given its second.",
        "subgraphs in which targets have edges",
        alterations.hidden_directions,
        ("per-pair-node",),
        "graph",
    ),
    "one-other-vote": Fault(
        "One vote is not the one that the model casts.",
        "listed votes are not those",
        alterations.one_other_vote,
        ("edge-centric-node", "node-centric-graph", "gnncert-n-node", "per-pair-graph"),
        "model",
    ),
    "unanimous": Fault(
        "All listed votes are said to agree.",
        "listed votes are not those",
        alterations.unanimous,
        ("node-centric-node", "gated-node"),
        "model",
    ),
    "an-invented-abstention": Fault(
        "A subgraph is said to have cast nothing.",
        "listed votes are not those",
        alterations.an_invented_abstention,
        ("edge-centric-graph", "node-centric-node"),
        "model",
    ),
    "another-default": Fault(
        "A target's prediction without edges is another one.",
        "default votes are not those",
        alterations.another_default,
        ("edge-centric-node",),
        "model",
    ),
    "another-no-edge-prediction": Fault(
        "The prior follows a prediction that the model does not make.",
        "predictions without edges",
        alterations.another_no_edge_prediction,
        ("edge-centric-prior", "per-neighbour-node"),
        "model",
    ),
    "no_edge-in-doubt": Fault(
        "A prediction far from a tie is said to be close to one.",
        "close to a tie",
        alterations.no_edge_in_doubt,
        ("edge-centric-prior",),
        "model",
    ),
    "no-tolerance": Fault(
        "Scores are said to be the same on every machine, to the last bit.",
        "claim assumes that no score moves",
        alterations.no_tolerance,
        ("edge-centric-node",),
        "model",
    ),
    "another-model": Fault(
        "The file speaks about another model.",
        "the model is not the one that was certified",
        alterations.another_model,
        ("gated-node", "rs"),
        "model",
    ),
} | PAIR_FAULTS

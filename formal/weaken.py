"""Weakens one definition or statement at a time, and demands that a proof breaks.

`python formal/weaken.py` tries all and writes weakened.md; `python formal/weaken.py 20` tries 20 of them, spread over the list.
"""

import resource
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
SECONDS = 120  # of the processor, so that a busy machine does not decide
# What is weakened, in which file, the text and what replaces it, and the files that are compiled then; one of them must fail.
WEAKENED = [
    ("a tie is won by the label", "Vote", "- conceded - doubt - tie k a.", "- conceded - doubt.", ["Vote"]),
    ("unstable votes are not conceded", "Vote", "- standing k - conceded - doubt", "- standing k - doubt", ["Vote"]),
    ("a prior in doubt counts", "Vote", "- conceded - doubt - tie", "- conceded - tie", ["Vote"]),
    ("the limit forgets unlisted votes", "Vote", "cap (beyond n) (x Unreached + cap (unlisted n) (x Unlisted))", "cap (beyond n) (x Unreached)", ["Vote"]),
    ("the radius ignores ties", "Vote", "num T (fun i => beq (b i) (Some k)) - tie k a.", "num T (fun i => beq (b i) (Some k)).", ["Vote"]),
    ("the radius holds for one vote more", "Vote", "num T (fun i => negb (beq (b i) (b' i))) <= M ->", "num T (fun i => negb (beq (b i) (b' i))) <= M + 1 ->", ["Vote"]),
    ("added edges are no new neighbours", "NodeCentric", "let new := ladd (joined_nodes B) (add_edges B) in", "let new := joined_nodes B in", ["NodeCentric"]),
    ("changed edges are free", "NodeCentric", "Reach (ladd (joined_nodes B) (ladd (touched_edges B)", "Reach (ladd (joined_nodes B) (ladd (ladd (add_edges B) (delete_edges B))", ["NodeCentric"]),
    ("deleted and altered nodes are free", "NodeCentric", "(lmin (touched_nodes B) (Some reached))", "(Some 0)", ["NodeCentric"]),
    ("the target may be altered", "Graph", "~ In v (removed A) /\\ ~ In v (altered A).", "~ In v (removed A) /\\ ~ In v (removed A).", ["Graph", "NodeCentric"]),
    ("a changed pair may turn", "Graph", "(listed x y (changed A) /\\ arc G x y <> None)", "(listed x y (changed A) /\\ x = x)", ["Graph", "NodeCentric"]),
    ("injected ids may be taken", "Graph", "In x (injected A) -> node G x = None \\/ In x (removed A);", "In x (injected A) -> True;", ["Graph", "NodeCentric"]),
    ("votes may be marked unreached wrongly", "NodeCentric", "tier_of V i <> Reached -> ~ reached G i\n", "tier_of V i <> Reached -> True\n", ["NodeCentric"]),
    ("injected edges cost their node", "EdgeCentric", "Reach (ladd (injected_edges B)", "Reach (ladd (joined_nodes B)", ["EdgeCentric"]),
    ("the reach table is not charged", "EdgeCentric", "(cover (touched_nodes B))", "(Some 0)", ["EdgeCentric"]),
    ("the hash need not be symmetric", "EdgeCentric", "forall x y, h x y = h y x.", "forall x y, h x y = h x y.", ["EdgeCentric"]),
    ("own features are free", "Gated", "(if own then 1 else 0) in", "0 in", ["Gated"]),
    ("gated weights may follow own features", "Gated", "leads A G G' /\\ arcs_by (but_target A) G G' /\\", "leads A G G' /\\ arcs_by A G G' /\\", ["Gated"]),
    ("graphs: edges touch no group", "GraphTask", "Reach (ladd nodes (touched_edges B)) nodes", "Reach nodes nodes", ["GraphTask"]),
    ("graphs: loops are allowed", "GraphTask", "Definition loopless (G : graph) : Prop := forall x, arc G x x = None.", "Definition loopless (G : graph) : Prop := forall x, arc G x x = arc G x x.", ["GraphTask"]),
    ("GNNCert-EN: rows and columns overlap twice", "Gnncert", "Some (H * W - rest H e * rest W c).", "Some (H * W - rest H e * W).", ["Gnncert"]),
    ("GNNCert-E: deleted edges are free", "Gnncert", "(Reach (touched_edges B) (touched_edges B) (touched_edges B))", "(Reach (add_edges B) (add_edges B) (add_edges B))", ["Gnncert"]),
    ("per neighbour: a new vote counts nothing", "PerNeighbourVote", "+ cap (t_altered n) (o_not k))) (t_new n).", "+ cap (t_altered n) (o_not k))) (Some 0).", ["PerNeighbourVote"]),
    ("per neighbour: empty groups that cast the label count once", "PerNeighbourVote", "(lmul (Some 2) (t_new n))\n", "(t_new n)\n", ["PerNeighbourVote"]),
    ("per neighbour: altered ones are not touched", "PerNeighbour", "(ladd (ladd (delete_nodes B) (delete_edges B)) (ladd (change_features B) (change_edges B)))", "(ladd (delete_nodes B) (delete_edges B))", ["PerNeighbour"]),
    ("per pair: nothing is turned", "PerPair", "(t_altered n) (add_edges B).", "(t_altered n) (Some 0).", ["PerPair"]),
    ("per pair, graphs: altered nodes cost one vote", "OwnGroupsOfGraphs", "(ladd (change_edges B) (degrees (change_features B))) (add_edges B).", "(ladd (change_edges B) (change_features B)) (add_edges B).", ["OwnGroupsOfGraphs"]),
    ("many targets: an added edge counts once", "Collective", "(ladd (lmul (Some 2) (add_edges B)) (injected_edges B)).", "(ladd (add_edges B) (injected_edges B)).", ["Collective"]),
    ("many targets: needs are one too large", "Broken", "k <= Z.of_nat (length g).\nProof.", "k < Z.of_nat (length g).\nProof.", ["Broken"]),
    ("many targets: altered ones are not added", "Checker", "lmin (ladd (change_features B) (Some 1)) (Some fails)", "lmin (change_features B) (Some fails)", ["Checker", "CheckerProofs", "CheckedCertificates", "Broken"]),
    ("checker: any order of listed groups", "Checker", "(low <=? g) && ascends (g + 1) high l'", "ascends (g + 1) high l'", ["Checker", "CheckerProofs"]),
    ("checker: unlisted votes may be listed", "Checker", "negb (teq (its_tier (snd p)) Unlisted)", "true", ["Checker", "CheckerProofs"]),
    ("checker: one class need not be beaten", "Checker", "made c && forallb (fun k => lost + limit3", "made c && existsb (fun k => lost + limit3", ["Checker", "CheckerProofs"]),
    ("checker: target_features is ignored", "Checker", "if of_graphs s then when (ids_ok && negb own) (gnode_reach B)\n      else when (ids_ok && negb own)", "if of_graphs s then when (ids_ok && negb own) (gnode_reach B)\n      else when ids_ok", ["Checker", "CheckerProofs", "CheckedCertificates"]),
    ("checker: a doubtful prior counts", "Checker", "if no_edge_stable t then 0 else Z.abs (no_edge_prior s).", "0.", ["Checker", "CheckerProofs", "CheckedCertificates"]),
    ("checker: a clipped number becomes 0", "Checker", "if huge <=? a then None else n", "if huge <=? a then Some 0 else n", ["Checker", "CheckerProofs", "CheckedCertificates"]),
    ("reach table: the k smallest reaches", "CoverTable", "(forall y, In y l' -> y <= x) /\\ descends l'", "(forall y, In y l' -> x <= y) /\\ descends l'", ["CoverTable"]),
    ("stacked votes: a vote may exceed one vote", "StackedVote", "b j + b k <= S)", "b j + b k <= 2 * S)", ["StackedVote"]),
    ("stacked votes: a new neighbour gives half a vote", "StackedVote", "g_of V k * st_steps V + bit_of (computed V) * (slack V * st_steps V).", "g_of V k * (st_steps V / 2).", ["StackedVote"]),
    ("stacked votes: altered ones take nothing but their vote", "StackedVote", "- taken - (pays + m) * most_given k.", "- taken - pays * most_given k.", ["StackedVote"]),
    ("stacked votes: slack of the prior counts once", "StackedVote", "p_of V a - p_of V k - 2 * slack V.", "p_of V a - p_of V k - slack V.", ["StackedVote"]),
    ("stacked votes: a mean divides by all old neighbours", "StackedVote", "divisor V (degree - l + grows)", "divisor V (degree + grows)", ["StackedVote"]),
    ("stacked votes: turned neighbours are free", "StackedGraph", "l_turn : forall u, u <> v -> listed u v (added A) -> stays_joined u = true -> In u turn;", "l_turn : True;", ["StackedGraph"]),
    ("stacked votes: any change may separate a pair", "StackedGraph", "~ In u (removed A) -> joined_to id F W v G' u.", "~ In u (removed A) -> joined_to id F W v G u.", ["StackedGraph"]),
    ("stacked checker: one number of lost neighbours", "StackedChecker", "  ok l m taken\n  && match fuel with", "  match fuel with", ["StackedChecker", "StackedProofs"]),
    ("stacked checker: no end of new neighbours is free", "StackedChecker", "(if sum then y_most k <=? 0", "(if sum then true", ["StackedChecker", "StackedProofs"]),
    ("stacked checker: lost neighbours of a mean cost as altered ones", "StackedChecker", ":= Z.max (y_most k) (by_divisor s k).", ":= y_most k.", ["StackedChecker", "StackedProofs"]),
    ("stacked checker: other directions of pairs are free", "StackedChecker", "(if x_by_edge s then y_most k else 0).", "0.", ["StackedChecker", "StackedProofs"]),
    ("stacked checker: new neighbours of a mean are free", "StackedChecker", "  Z.max (y_most k - by_divisor s k) (if", "  Z.max 0 (if", ["StackedChecker", "StackedProofs"]),
    ("stacked checker: negative votes", "StackedChecker", "forallb (fun row => none_negative row && (add_up row 0 <=? vote_steps)) (x_rows t)", "forallb (fun row => add_up row 0 <=? vote_steps) (x_rows t)", ["StackedChecker", "StackedProofs"]),
    ("two levels: an edge moves a vote by a whole one", "TwoLevels", "k <> a -> 2 * Z.abs (", "k <> a -> Z.abs (", ["TwoLevels"]),
    ("two levels: nodes are free at the target", "TwoLevels", "lead2 p a k x - n * S - sum key", "lead2 p a k x - sum key", ["TwoLevels"]),
    ("two levels: a vote moves by a third of w", "TwoLevelsReal", "(B * exp y) C' - apart A B C) <= w / 2.", "(B * exp y) C' - apart A B C) <= w / 3.", ["TwoLevelsReal"]),
    ("two levels: odds grow by half", "TwoLevelsReal", "(E * exp x) / Q' <= exp w * (E / Q) /\\", "(E * exp x) / Q' <= exp (w / 2) * (E / Q) /\\", ["TwoLevelsReal"]),
    ("only if: limits may be negative", "Exact", "match n with Some m => 0 <= m | None => True end.", "match n with Some m => True | None => True end.", ["Exact"]),
    ("only if: also where the test holds", "Exact", "~ withstands V C P doubt a n ->", "withstands V C P doubt a n ->", ["Exact"]),
    ("graphs with loops: groups of one node are not reached", "GraphTask", "tier_of V i <> Reached -> forall x, h x = i -> node G x = None\n    }.", "tier_of V i = Unlisted -> forall x, h x = i -> node G x = None\n    }.", ["GraphTask"]),
    ("stacked votes, many targets: a pair touches one", "StackedBroken", "total_of id (fun v => Z.of_nat (length (here id id_eq v l))) broken <= 2 * Z.of_nat (length l)).", "total_of id (fun v => Z.of_nat (length (here id id_eq v l))) broken <= Z.of_nat (length l)).", ["StackedBroken"]),
    ("stacked votes, many targets: a need is the radius", "StackedChecker", "then structure else radius) + 1).", "then structure else radius) + 2).", ["StackedChecker", "StackedProofs", "StackedGraph", "StackedBroken"]),
    ("possible classes: ties are forgotten", "Possible", "P j + standing V j + tie j k - P k", "P j + standing V j + 1 - P k", ["Possible"]),
    ("possible classes: unstable votes are not k's", "Possible", "- standing V k - conceded V - doubt - won)", "- standing V k - doubt - won)", ["Possible"]),
    ("two levels on graphs: an edge moves a vote by one", "TwoLevelsGraph", "j k - lead_in (exact f xs) j k) <= vote_steps - 12;", "j k - lead_in (exact f xs) j k) <= 2 * vote_steps;", ["TwoLevelsGraph"]),
    ("two levels on graphs: an altered node counts once", "TwoLevelsGraph", "length (removed A) + 2 * length (altered A)).", "length (removed A) + length (altered A)).", ["TwoLevelsGraph"]),
    ("two levels on graphs: deleted edges are free", "TwoLevelsGraph", "Z.of_nat (length (added A) + length (deleted A)).", "Z.of_nat (length (added A)).", ["TwoLevelsGraph"]),
    ("two levels on graphs: any change may separate two nodes", "TwoLevelsGraph", "~ In y (removed A) -> joined_to id F W x G' y.", "~ In y (removed A) -> joined_to id F W x G y.", ["TwoLevelsGraph"]),
    ("two levels on graphs: any slack", "StackedChecker", "&& (x_slack s <=? 3).", "&& (x_slack s <=? 4).", ["StackedChecker", "StackedProofs", "StackedGraph", "TwoLevels", "TwoLevelsGraph"]),
    ("two levels: the factor may be one vote", "TwoLevelsReal", "w_small : (0 <= w <= vote_steps - 16)%Z.", "w_small : (0 <= w <= vote_steps)%Z.", ["TwoLevelsReal"]),
    ("possible classes, own groups: nothing is altered", "PossibleOwn", "else ladd (t_new n) (Some (cap (t_altered n) (o_not key V k))).", "else t_new n.", ["PossibleOwn"]),
    ("possible classes, own groups: what goes is no gain for empty groups", "PossibleOwn", "z <= o_for key V y /\\ z + own_lose <= cap", "z <= o_for key V y /\\ z + own_lose + 1 <= cap", ["PossibleOwn"]),
    ("excluded labels: ties are forgotten", "Excluded", "z_sure j + tie (z_class j) (z_class k) - z_sure k", "z_sure j + 1 - z_sure k", ["Excluded", "ExcludedProofs"]),
    ("excluded labels: unsure votes are not k's", "Excluded", "- z_sure k - z_unsure v.", "- z_sure k.", ["Excluded", "ExcludedProofs"]),
    ("excluded labels: a prior in doubt counts", "Excluded", "(num_groups s - s0 - s1 - s2 + prior_doubt s t).", "(num_groups s - s0 - s1 - s2).", ["Excluded", "ExcludedProofs"]),
    ("excluded labels: reached votes are limited like others", "Excluded", "fits_in (total snd needs 0) (all n)", "fits_in (total snd needs 0) (beyond n)", ["Excluded", "ExcludedProofs"]),
    ("excluded labels: the label may be left out", "Excluded", "negb (Nat.eqb (z_class k) (label c)) && (kept", "true && (kept", ["Excluded", "ExcludedProofs"]),
    ("excluded labels: what is not covered excludes all", "Excluded", "| None => map (fun _ => false) (z_classes v)", "| None => map (fun _ => true) (z_classes v)", ["Excluded", "ExcludedProofs"]),
    ("excluded labels: any order of listed groups", "Excluded", "map (fun k => made c && negb", "map (fun k => true && negb", ["Excluded", "ExcludedProofs"]),
    ("excluded labels, own groups: nothing is altered", "Excluded", "else ladd (t_new n) (Some altered) in", "else t_new n in", ["Excluded", "ExcludedProofs"]),
    ("excluded labels, own groups: nothing is turned", "Excluded", "fits_in (lose - cap (t_turned n) turn) (t_touched n)", "fits_in lose (t_touched n)", ["Excluded", "ExcludedProofs"]),
    ("excluded labels, own groups: one altered vote less", "Excluded", "(z + lose <=? altered)", "(z + lose <? altered)", ["Excluded", "ExcludedProofs"]),
    ("excluded labels, stacked votes: own features are ignored", "Excluded", "y_made c && negb (snd q) && negb", "y_made c && true && negb", ["Excluded", "ExcludedProofs"]),
    ("excluded labels, stacked votes: nothing is altered", "Excluded", "false new lost altered (snd p))", "false new lost (Some 0) (snd p))", ["Excluded", "ExcludedProofs"]),
    ("excluded labels, two levels: nodes are free", "Excluded", "second_lead_stays s edges nodes g (fst p)", "second_lead_stays s edges (Some 0) g (fst p)", ["Excluded", "ExcludedProofs"]),
    ("prices: of the first kind as many as can be paid", "Prices", "if is_last ps' then", "if true then", ["Prices"]),
    ("prices: an attack at this price counts as cheaper", "Prices", "Some a, Some b => a < b | Some _, None", "Some a, Some b => a <= b | Some _, None", ["Prices"]),
    ("prices: own features cost nothing", "Prices", "costs o || all_amounts (kinds P) (match X", "costs o || all_amounts [] (match X", ["Prices"]),
    ("prices: edges of injected nodes are not limited together", "Graph", "few_in_all : few (brought A) (edges_in_all B)", "few_in_all : few (@nil id) (edges_in_all B)", ["Graph"]),
    ("poisoned graphs: a tie in a view is won by its label", "PoisonedGraphs", "- unsure l - tie k b.", "- unsure l.", ["PoisonedGraphs"]),
    ("poisoned graphs: unsure votes in a view are not conceded", "PoisonedGraphs", "- sure_for k l - unsure l - tie", "- sure_for k l - tie", ["PoisonedGraphs"]),
    ("poisoned graphs: a poisoned model moves one vote", "PoisonedGraphs", "least_of (fun k => lead_over (elected C l) k l / 2)", "least_of (fun k => lead_over (elected C l) k l)", ["PoisonedGraphs"]),
    ("poisoned graphs: a view bears one graph more", "PoisonedGraphs", "Some m => m <=? x | None", "Some m => m <=? x + 1 | None", ["PoisonedGraphs"]),
    ("poisoned graphs: models read each other's graphs", "PoisonedGraphs", "(forall x, part x = i -> D' x = D x) -> forall G y", "(forall x, part x = part x -> D' x = D x) -> forall G y", ["PoisonedGraphs"]),
    ("poisoned graphs: views with nodes may be left out", "PoisonedGraphs", "| None => is_empty H\n", "| None => True\n", ["PoisonedGraphs"]),
    ("edge-blind: training may read arcs", "EdgeBlind", "-> node G' x = node G x) -> learn G' = learn G.", "-> node G' x = node G x) -> (forall x y, arc G' x y = arc G x y) -> learn G' = learn G.", ["EdgeBlind"]),
    ("edge-blind: labelled nodes may be altered", "EdgeBlind", "labelled x -> spares A x.", "labelled x -> ~ In x (removed A).", ["EdgeBlind"]),
    ("labels: a tie is won by the label", "LabelVotes", "label_score y a - label_score y k - tie k a.", "label_score y a - label_score y k.", ["LabelVotes"]),
    ("labels: a flip takes one vote", "LabelVotes", "else Z.abs (weight V u) + tilt y a k u.", "else Z.abs (weight V u).", ["LabelVotes"]),
    ("labels: negative weights cost nothing", "LabelVotes", "else Z.abs (weight V u) + tilt", "else weight V u + tilt", ["LabelVotes"]),
    ("labels: audited labels may change", "LabelVotes", "audited V u = true -> y' u = y u.", "audited V u = true -> y u = y u.", ["LabelVotes"]),
    ("labels: one entry more may change", "LabelVotes", "(length (changed_entries y y') <= r)%nat.", "(length (changed_entries y y') <= S r)%nat.", ["LabelVotes"]),
    ("labels: an abstention asks for nothing", "LabelVotes", "top r D <= label_lead y a k - asked V.", "top r D <= label_lead y a k.", ["LabelVotes"]),
    ("labels: the lead may be one too small", "LabelVotes", "label_lead y a k - asked V < top r D ->", "label_lead y a k - asked V <= top r D ->", ["LabelVotes"]),
    ("labels: a total costs nothing", "LabelVotes", "/\\ p * total + over", "/\\ over", ["LabelVotes"]),
    ("labels: entries bring nothing beyond their price", "LabelVotes", "Z.max 0 (q * label_cost y a k u - p * price u)", "0", ["LabelVotes"]),
    ("labels checker: one rival is enough", "LabelChecker", "v_made c && forallb (label_lead_stays n)", "v_made c && existsb (label_lead_stays n)", ["LabelChecker"]),
    ("labels checker: one cost is left out", "LabelChecker", "if m <=? 0 then taken", "if m <=? 1 then taken", ["LabelChecker"]),
    ("labels checker: the smallest costs", "StackedChecker", "Definition leb (x y : Z) : bool := y <=? x.", "Definition leb (x y : Z) : bool := x <=? y.", ["StackedChecker", "LabelChecker"]),
    ("labels checker: what a class has in advance is forgotten", "LabelChecker", "score_of k l (at_class k (l_advance s)).", "score_of k l 0.", ["LabelChecker"]),
    ("labels checker: audited entries are not told apart", "LabelChecker", "  if e_audited e then 0\n  else", "  if true then 0\n  else", ["LabelChecker"]),
    ("labels checker: a class behind in one duel of its own", "LabelChecker", "Nat.eqb (v_class r) k && label_lead_stays n r", "label_lead_stays n r", ["LabelChecker"]),
    ("labels checker: a class stays ahead of itself", "LabelChecker", "negb (Nat.eqb j k) && label_lead_stays n", "label_lead_stays n", ["LabelChecker"]),
    ("labels checker: the rival stays behind another class that costs leave unchanged", "LabelChecker", "label_lead_stays n (label_against (not_asked s) l j k)", "label_lead_stays (Some 0) (label_against (not_asked s) l j k)", ["LabelChecker"]),
    ("joint checker: another class has the label's neighbours", "JointChecker", "joint_lead_stays f new lost (led_by j c) (", "joint_lead_stays f new lost c (", ["JointChecker"]),
    ("joint checker: new neighbours are free", "JointChecker", "Some x => (x + cap lost", "Some x => (0 + cap lost", ["JointChecker"]),
    ("joint checker: lost neighbours are free", "JointChecker", "(x + cap lost (sure_for f (j_label c) (j_near c)))", "x", ["JointChecker"]),
    ("joint checker: neighbours that may change abstain", "JointChecker", "is_class k (v_label c) else -1.", "is_class k (v_label c) else 0.", ["JointChecker"]),
    ("joint checker: neighbours need not withstand the labels", "JointChecker", "  if labels_hold c f then is_class a (v_label c) - is_class k", "  if labels_hold c (Some 0) then is_class a (v_label c) - is_class k", ["JointChecker"]),
    ("joint checker: changed labels cost nothing", "JointChecker", "v_lead r - first_sum f (v_costs r) 0 +", "v_lead r +", ["JointChecker"]),
    ("joint checker: one mix is enough", "JointChecker", "(Some 0) && any_mix m", "(Some 0) || any_mix m", ["JointChecker"]),
    ("joint checker: neighbours have other labels", "JointChecker", "e_label (entry_at (theirs u) i) = e_label (entry_at l i) /\\", "e_label (entry_at l i) = e_label (entry_at l i) /\\", ["JointChecker"]),
    ("labels and edges: neighbours that may change are free", "LabelsAndEdges", " - each J * Z.of_nat (length (filter (fun u => negb (sure u)) (near J))).", ".", ["LabelsAndEdges"]),
    ("labels and edges: changed labels cost nothing", "LabelsAndEdges", "label_lead (own J) y a k - top f D\n", "label_lead (own J) y a k\n", ["LabelsAndEdges"]),
    ("labels and edges: an edge takes half a vote", "LabelsAndEdges", "e * each J <= label_lead", "e * (each J / 2) <= label_lead", ["LabelsAndEdges"]),
    ("labels and edges: a neighbour withstands fewer labels", "LabelsAndEdges", "withstands_labels theirs y C c f ->", "withstands_labels theirs y C c 0 ->", ["LabelsAndEdges"]),
    ("numbers: a sum may wrap round", "Overflow", "(x < 0 <-> 0 <= s) /\\ (y < 0 <-> 0 <= s).", "(x < 0 <-> 0 <= s) /\\ (y < 0 <-> 0 <= s) /\\ x = y.", ["Overflow"]),
    ("numbers: products are not tried", "Overflow", "product_is_right (x y p : Z) : Prop := Z.quot p x = y", "product_is_right (x y p : Z) : Prop := x = x", ["Overflow"]),
    ("pairs: an edge reaches one vote where neighbours of one node vote as well", "PairVotes", "match r with Both => 2 | _ => 1 end.", "match r with Both => 1 | _ => 1 end.", ["PairVotes"]),
    ("pairs: a node has two votes where neighbours of one node vote as well", "PairVotes", "match r with Both => 3 | _ => 1 end.", "match r with Both => 2 | _ => 1 end.", ["PairVotes"]),
    ("pairs: a common neighbour needs three edges", "PairVotes", "Some t => t <? 2 |", "Some t => t <? 3 |", ["PairVotes"]),
    ("pairs: altered nodes count once where neighbours of one node vote as well", "PairVotes", "(vertex (if blind then Some 0 else change_features B)) None", "(if blind then Some 0 else change_features B) None", ["PairVotes"]),
    ("pairs: features of other nodes are free, though votes read them", "PairVotes", "(vertex (if blind then Some 0 else change_features B)) None", "(Some 0) None", ["PairVotes"]),
    ("pairs: injected nodes are free", "PairVotes", "(vertex (voting_newcomers r B)) None", "(Some 0) None", ["PairVotes"]),
    ("pairs: the radius counts votes where neighbours of one node vote as well", "PairVotes", "any_stacked_test s c (votes_of_node r * x)", "any_stacked_test s c x", ["PairVotes"]),
    ("pairs: the prior may follow the graph", "PairVotes", "pm_own : forall G G' y, node G' u = node G u -> node G' v = node G v -> (own_score G y <-> own_score G' y)", "pm_own : True", ["PairVotes"]),
    ("pairs: a common neighbour is a neighbour of one node", "PairVotes", "| AtBoth => near_to G u (snd x) /\\ near_to G v (snd x)", "| AtBoth => near_to G u (snd x) \\/ near_to G v (snd x)", ["PairVotes"]),
    ("pairs: one end of a pair may be altered", "PairVotes", "pa_u : spares A u; pa_v : spares A v", "pa_u : spares A u; pa_v : spares A u", ["PairVotes"]),
    ("pairs in plain numbers: an edge costs the vote of a common neighbour alone", "PairVotes", "- S * (w + gamma) * Z.of_nat (length (near_pairs (added A))", "- S * gamma * Z.of_nat (length (near_pairs (added A))", ["PairVotes"]),
    ("trusted contacts: changed edges are free", "PairVotes", "| Trusted => Budget (add_edges B) (delete_edges B) (change_edges B)", "| Trusted => Budget (add_edges B) (delete_edges B) (Some 0)", ["PairVotes"]),
    ("trusted contacts: they may be deleted", "PairVotes", "contact G j -> ~ In j (removed A) /\\ ~ In j (altered A);", "contact G j -> ~ In j (altered A) /\\ ~ In j (altered A);", ["PairVotes"]),
    ("trusted contacts: own edges may change", "PairVotes", "ta_own : forall x, arc G' u x = arc G u x;", "ta_own : forall x, arc G u x = arc G u x;", ["PairVotes"]),
    ("trusted contacts: a file need not say that votes read values of edges", "PairVotes", "Bool.eqb (x_by_edge s) (match r with Trusted => true | _ => false end)", "true", ["PairVotes"]),
    ("rounding: a sum errs like one operation", "Rounding", ":= INR k * u / (1 - INR k * u).", ":= u / (1 - u).", ["Rounding"]),
    ("rounding: one operation of a sum is not counted", "Rounding", "(length l + r - 1 <= k)%nat -> INR k", "(length l + r - 2 <= k)%nat -> INR k", ["Rounding"]),
    ("rounding: what is taken for zero is lost without a trace", "Rounding", "* Rabs exact + INR r * (1 + u) ^ r * eta.", "* Rabs exact.", ["Rounding"]),
    ("rounding: errors are not carried through a weight", "Rounding", "(s * e + gamma u k * (a * (m + e))", "(gamma u k * (a * (m + e))", ["Rounding"]),
    ("rounding: the computed row is as small as the exact one", "Rounding", "gamma u k * (a * (m + e)) + 4", "gamma u k * (a * m) + 4", ["Rounding"]),
    ("rounding: weights may be negative", "Rounding", "Prop := 0 <= weight v /\\ bounded", "Prop := weight v = weight v /\\ bounded", ["Rounding"]),
    ("rounding: a lead of one bound decides", "Rounding", "found a - found k > 2 * bound)", "found a - found k > bound)", ["Rounding"]),
    ("rounding: a lead of two bounds holds on every machine", "Rounding", "found a - found k > 4 * bound)", "found a - found k > 2 * bound)", ["Rounding"]),
    ("contests: a cap adds nothing", "Contest", "- size w * (at_class (e_cap e) k + 2 * e_doubt e).", "- size w * (2 * e_doubt e).", ["Contest", "ContestProofs"]),
    ("contests: rounding of an effect counts once", "Contest", "(at_class (e_cap e) k + 2 * e_doubt e)", "(at_class (e_cap e) k + e_doubt e)", ["Contest", "ContestProofs"]),
    ("contests: rounding of a unit counts once", "Contest", "worth_of w k (u_adds u) - 2 * size w * u_doubt u", "worth_of w k (u_adds u) - size w * u_doubt u", ["Contest", "ContestProofs"]),
    ("contests: units that are over stand", "Contest", "if is_over q u then Z.max 0 (stands w k u - contributes w k e) else 0", "0", ["Contest", "ContestProofs"]),
    ("contests: what a unit loses for nothing is sold again", "Contest", "- contributes w k (snd h) - free_loss w k q p u - price (fst h)", "- contributes w k (snd h) - 2 * free_loss w k q p u - price (fst h)", ["Contest", "ContestProofs"]),
    ("contests: units take nothing beyond prices", "Contest", "+ beyond_price w k q price (fst r) (snd r)) + n) 0 (rows t).", ") + n) 0 (rows t).", ["Contest", "ContestProofs"]),
    ("contests: one move can hit a unit", "Contest", "(p_hit_by p)).\n(** What rounding", "(firstn 1 (p_hit_by p))).\n(** What rounding", ["Contest", "ContestProofs"]),
    ("contests: counts of units are not read", "Contest", "u_count (snd r) * (2 * size w", "(2 * size w", ["Contest", "ContestProofs"]),
    ("contests: a price may be negative", "Contest", "if 0 <=? y then Some (a * y + rest) else None", "Some (a * y + rest)", ["Contest", "ContestProofs"]),
    ("contests: any number of moves may have a price", "Contest", "if y =? 0 then Some rest else None", "Some rest", ["Contest", "ContestProofs"]),
    ("contests: new effects are free", "Contest", "forallb (fun h => - contributes w k (snd h) <=? price (fst h)) (d_new t)\n", "true\n", ["Contest", "ContestProofs"]),
    ("contests: the scores are not added up", "Contest", "&& forallb (adds_up t) (seq 0 C) &&", "&&", ["Contest", "ContestProofs"]),
    ("contests: rounding of the target is not counted", "Contest", "worth_of w k (d_scores t) - doubts w (d_doubt t) (at_class (d_doubt t) k) + give", "worth_of w k (d_scores t) + give", ["Contest", "ContestProofs"]),
    ("contests: a label need not lead", "Contest", "- 1 - least_lead g) allowed", "- 1) allowed", ["Contest", "ContestProofs"]),
    ("contests: ties belong to the label", "Contest", "tie g (only C (d_label t)) k - 1 - least_lead g", "tie g (only C (d_label t)) k - least_lead g", ["Contest", "ContestProofs"]),
    ("contests: every tie counts where scores are rounded", "Contest", "if whole g then first_of k w else Z.min 1 (first_of k w).", "first_of k w.", ["Contest", "ContestProofs"]),
    ("contests: weights may be negative", "Contest", "sized C w && positive w &&", "sized C w &&", ["Contest", "ContestProofs"]),
    ("contests: a class is weighed against itself", "Contest", "&& (at_class w k =? 0)\n", "\n", ["Contest", "ContestProofs"]),
    ("contests: no weights exclude a class", "Contest", "(0 <? size w) &&", "true &&", ["Contest", "ContestProofs"]),
    ("contests: prices of the label alone are enough", "Contest", "  forallb (fun k => Nat.eqb k (d_label t) ||\n    bears", "  existsb (fun k => Nat.eqb k (d_label t) ||\n    bears", ["Contest", "ContestProofs"]),
    ("contests: a target needs one shared move more than is shown", "Contest", "[(shared, Some (x - 1))]", "[(shared, Some (x - 2))]", ["Contest", "ContestProofs"]),
    ("contests: targets without prices do not fall", "Contest", "+ free <=? number)", "<=? number)", ["Contest", "ContestProofs"]),
    ("contests: a play may hit a unit twice", "Contest", "Z.of_nat (length l) = u_count u /\\ Forall", "u_count u <= Z.of_nat (length l) /\\ Forall", ["Contest", "ContestProofs"]),
    ("contests: limits do not bind", "Contest", "within (times moves (concat hit ++ new)) n }", "within (times moves new) n }", ["Contest", "ContestProofs"]),
    ("append-only: intervals of what moves", "AppendOnly", "match p with Some Same => Some Same | _ => None end\n    | _ => p", "match p with Some _ => Some Same | _ => None end\n    | _ => p", ["AppendOnly"]),
    ("append-only: a falling value is counted", "AppendOnly", "match p with Some Same | Some Up => Some Up | _ => None end.", "match p with Some _ => Some Up | _ => None end.", ["AppendOnly"]),
    ("append-only: payers of the target send more", "AppendOnly", "| Ledger => ~ pays G (source r)", "| Ledger => True", ["AppendOnly"]),
    ("append-only: old rows of payers grow", "AppendOnly", "(pays G (source r) -> up r = r)", "(pays G (source r) -> grown r (up r))", ["AppendOnly"]),
    ("append-only: what payers got is fixed", "AppendOnly", "if settled near w && only_sent e then", "if settled near w then", ["AppendOnly"]),
    ("append-only: columns that move are fixed", "AppendOnly", "| _, Rises => Some Up | _, Moves => None end.", "| _, Rises => Some Up | _, Moves => Some Same end.", ["AppendOnly"]),
    ("append-only: the leaf test takes fixed columns for rising ones", "AppendOnly", "(negb (rises j) && left_a", "(left_a", ["AppendOnly"]),
    ("append-only: deletions change no far end", "AppendOnly", "sum (map X U) - t - t' <= sum (map y U).", "sum (map X U) - t <= sum (map y U).", ["AppendOnly"]),
    ("graph votes: a tie is won by the label", "GraphVotes", "graph_score s a - graph_score s k - tie k a.", "graph_score s a - graph_score s k.", ["GraphVotes"]),
    ("graph votes: an item loses down to nothing", "GraphVotes", "speaks a k i (s i) - low i.", "speaks a k i (s i).", ["GraphVotes"]),
    ("graph votes: one item more may change", "GraphVotes", "(length (moved group true s s') <= m)%nat", "(length (moved group true s s') <= S m)%nat", ["GraphVotes"]),
    ("graph votes: pairs that are apart cost nothing", "GraphVotes", "top m D + top m' D' <= graph_lead s a k.", "top m D <= graph_lead s a k.", ["GraphVotes"]),
    ("graph votes: states that nobody knows are left out", "GraphVotes", "(forall i, (i < items G)%nat -> (s' i < states G i)%nat) /\\ (length (moved group true", "(forall i, (i < items G)%nat -> (s i < states G i)%nat) /\\ (length (moved group true", ["GraphVotes"]),
    ("nodes that come and go: a tie is won by the label", "GraphVotes", "node_score l a - node_score l k - tie k a.", "node_score l a - node_score l k.", ["GraphVotes"]),
    ("nodes that come and go: their number has no score", "GraphVotes", "size_lead a k n - size_lead a k (n - (d + r) + (i + r)) + top", "top", ["GraphVotes"]),
    ("nodes that come and go: new nodes bring nothing", "GraphVotes", "+ top (d + r) D - Z.of_nat (i + r) * low.", "+ top (d + r) D.", ["GraphVotes"]),
    ("nodes that come and go: altered nodes keep their votes", "GraphVotes", "+ top (d + r) D - Z.of_nat", "+ top d D - Z.of_nat", ["GraphVotes"]),
]  # fmt: skip


BROKEN, ENDLESS, SURVIVES = "a proof breaks", f"a proof does not end in {SECONDS} s of the processor", "**survives**"
NO_PROOF = "**is no Coq**"  # the replacement itself cannot be read, so that no proof was tried
# What coqc says if a file that another one needs is missing or out of date: nothing was tried.
NOT_BUILT = ("Cannot find a physical path", "Unable to locate library", "inconsistent assumptions over library")


def outcome(weakened: tuple[str, str, str, str, list[str]]) -> str:
    """What becomes of the files that are named, after the replacement."""
    _, file, old, new, build = weakened
    text = (HERE / f"{file}.v").read_text()
    assert text.count(old) >= 1, f"{file}.v no longer says {old!r}"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in (*HERE.glob("*.v"), *HERE.glob("*.vo")):
            shutil.copy2(path, folder)
        (folder / f"{file}.v").write_text(text.replace(old, new))
        for one in build:
            command = ["coqc", "-q", "-Q", name, "Agnncert", str(folder / f"{one}.v")]
            run = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit_time)
            if run.returncode < 0:  # stopped by the limit
                return ENDLESS
            if run.returncode:
                return reason(run.stderr)
    return SURVIVES


def limit_time() -> None:
    """Lets the process that is about to start run for so many seconds of the processor."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))


def reason(error: str) -> str:
    """What an error of coqc means; one that says nothing about a proof is not taken for a broken proof."""
    if any(words in error for words in NOT_BUILT):
        sys.exit(f"compile the proofs first (make -C formal all): {error[:400]}")
    return NO_PROOF if "Syntax error" in error else BROKEN


def main() -> int:
    step = max(1, len(WEAKENED) // int(sys.argv[1])) if len(sys.argv) > 1 else 1
    begin, lines, found, chosen = time.perf_counter(), [], [], WEAKENED[::step]
    with ThreadPoolExecutor(2) as two:
        for (what, file, *_), became in zip(chosen, two.map(outcome, chosen), strict=True):
            found.append(became)
            lines.append(f"| {what} | `{file}.v` | {became} |")
            print(lines[-1], flush=True)
    result = f"{len(found)} weakened, {found.count(SURVIVES)} survive, {found.count(ENDLESS)} do not end"
    if NO_PROOF in found:
        result += f", {found.count(NO_PROOF)} cannot be read"
    page = [
        "# Weakened definitions",
        "",
        "`python formal/weaken.py` replaces one text at a time. Each must break a proof.",
        "",
    ]
    page += ["| weakened | file | outcome |", "|---|---|---|", *lines, "", f"{result}."]
    if step == 1:
        (HERE / "weakened.md").write_text("\n".join(page) + "\n")
    print(f"{result}, {time.perf_counter() - begin:.0f} s")
    return 1 if SURVIVES in found or NO_PROOF in found else 0


if __name__ == "__main__":
    sys.exit(main())

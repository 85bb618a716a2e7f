import agnncert_large
import agnncert_peers
import agnncert_peers.testing

from . import attacks as attacks
from . import errors as errors
from .append.defence import AppendOnly as AppendOnly
from .attacks.api import attack as attack
from .auditing.model_audit import AuditReport as AuditReport
from .backtesting import Backtest as Backtest
from .backtesting import backtest as backtest
from .certificates.budget import Budget as Budget
from .certificates.budget import Prices as Prices
from .certificates.claim import Claim as Claim
from .certificates.voting_rule import VotingRule as VotingRule
from .certifier import audit as audit
from .certifier import certify as certify
from .certifier import choose_threshold as choose_threshold
from .certifier import explain as explain
from .certifier import labels_of as labels_of
from .contest.verdict import ContestVerdict as ContestVerdict
from .contest.verdict import check_contest as check_contest
from .controls.api import compare_controls as compare_controls
from .controls.table import ComparedControls as ComparedControls
from .controls.table import Control as Control
from .datasets.events import load_events as load_events
from .datasets.hetero_model import HeteroModel as HeteroModel
from .datasets.load import load_dataset as load_dataset
from .datasets.npz import load_npz as load_npz
from .datasets.relations import from_hetero as from_hetero
from .datasets.splits import GraphSet as GraphSet
from .datasets.splits import dataset_digest as dataset_digest
from .datasets.splits import inductive_view as inductive_view
from .datasets.splits import split as split
from .datasets.tables import load_tables as load_tables
from .datasets.threshold_part import keep_for_threshold as keep_for_threshold
from .defence import Defence as Defence
from .defence import OperatingPoint as OperatingPoint
from .divided.choose_rule import choose_voting_rule as choose_voting_rule
from .divisions.base import Division as Division
from .divisions.edge import EdgeCentric as EdgeCentric
from .divisions.edge import PerEdge as PerEdge
from .divisions.node import GatedNodeCentric as GatedNodeCentric
from .divisions.node import NodeCentric as NodeCentric
from .divisions.node import PerNeighbour as PerNeighbour
from .errors import AgnncertError as AgnncertError
from .explanation import VoteExplanation as VoteExplanation
from .fitting import fit as fit
from .fitting import subgraphs as subgraphs
from .graph_votes.defence import BagOfNodes as BagOfNodes
from .graph_votes.defence import GraphVotes as GraphVotes
from .graph_votes.defence import StructureOnly as StructureOnly
from .graphs.perturbation import Perturbation as Perturbation
from .isolated.defence import IsolatedModels as IsolatedModels
from .labels.defence import LabelVotes as LabelVotes
from .models.build import build_model as build_model
from .models.io import load_model as load_model
from .models.io import pretrained as pretrained
from .models.io import save_model as save_model
from .models.wrappers import Fallback as Fallback
from .models.wrappers import Scaling as Scaling
from .monitoring import Monitor as Monitor
from .monitoring import monitor as monitor
from .pairs.defence import PairVotes as PairVotes
from .proving.certificate import Certificate as Certificate
from .proving.certificate import load_certificate as load_certificate
from .proving.difference import Difference as Difference
from .proving.difference import diff as diff
from .proving.groups import ranges as ranges
from .receptive import ReceptiveField as ReceptiveField
from .receptive import certify_field as certify_field
from .receptive import receptive_field as receptive_field
from .recipes import Recipe as Recipe
from .recipes import recipe as recipe
from .report.figures import save_figures as save_figures
from .report.figures import save_tables as save_tables
from .report.page import build_report as build_report
from .report.summary import ReportContext as ReportContext
from .stacked.defence import StackedVotes as StackedVotes
from .stacked.training import mark_trusted as mark_trusted
from .teaching import teach as teach
from .training.own_loop import vote_loss as vote_loss
from .undefended import Undefended as Undefended
from .verdict import Verdict as Verdict
from .verdict import verify as verify
from .vote_explainer import VoteExplainer as VoteExplainer

__version__: str
Comparison = agnncert_peers.Comparison
baselines = agnncert_peers
compare = agnncert_peers.compare
testing = agnncert_peers.testing
Ray = agnncert_large.Ray
convert_parquet = agnncert_large.convert_parquet
open_graph = agnncert_large.open_graph
write_graph = agnncert_large.write_graph

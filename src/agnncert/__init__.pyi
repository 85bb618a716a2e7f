__version__: str

from . import attacks as attacks
from . import baselines as baselines
from . import code as code
from . import errors as errors
from . import testing as testing
from .certifier import certify as certify
from .datasets.graphs import GraphSet as GraphSet
from .datasets.graphs import dataset_digest as dataset_digest
from .datasets.graphs import inductive_view as inductive_view
from .datasets.load import load_dataset as load_dataset
from .datasets.tables import load_tables as load_tables
from .divisions.base import Division as Division
from .divisions.edge import EdgeCentric as EdgeCentric
from .divisions.node import NodeCentric as NodeCentric
from .errors import AgnncertError as AgnncertError
from .errors import BudgetError as BudgetError
from .errors import CertificateError as CertificateError
from .errors import DatasetError as DatasetError
from .errors import DivisionError as DivisionError
from .errors import GraphError as GraphError
from .errors import IdError as IdError
from .errors import MissingPackage as MissingPackage
from .errors import ModelContractError as ModelContractError
from .errors import NotCovered as NotCovered
from .errors import SettingsError as SettingsError
from .graphs.perturbation import Perturbation as Perturbation
from .models import build_model as build_model
from .models import load_model as load_model
from .models import save_model as save_model
from .proof.budget import Budget as Budget
from .proof.certificate import Certificate as Certificate
from .proof.certificate import load_certificate as load_certificate
from .proof.claim import Claim as Claim
<<<<<<< HEAD
from .proof.decision import Decision as Decision
=======
from .proof.vote import Vote as Vote
>>>>>>> main
from .report import ReportContext as ReportContext
from .report import build_report as build_report
from .report import save_figures as save_figures
from .report import save_tables as save_tables
from .studies.comparison import Comparison as Comparison
from .studies.comparison import compare as compare
from .training import Weights as Weights
from .training import fit as fit
from .training.choose import choose_groups as choose_groups
from .verifier import Verdict as Verdict
from .verifier import verify as verify
from .voting.auditing import AuditReport as AuditReport
from .voting.auditing import audit as audit

"""agnncert: graph neural network decisions that carry a proof.

Names are loaded on first use, so that ``agnncert --help`` and ``agnncert verify`` never import torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_OWNER = {
    "AgnncertError": "errors",
    "AuditReport": "contract",
    "Budget": "budget",
    "BudgetError": "errors",
    "Certificate": "certificate",
    "CertificateError": "errors",
    "Claim": "claim",
    "Comparison": "comparison",
    "DatasetError": "errors",
    "Division": "division",
    "DivisionError": "errors",
    "EdgeCentric": "division",
    "GraphError": "errors",
    "GraphSet": "datasets.graphset",
    "IdError": "errors",
    "ModelContractError": "errors",
    "NodeCentric": "division",
    "NotCovered": "errors",
    "Perturbation": "perturbation",
    "ReportContext": "report",
    "SettingsError": "errors",
    "Verdict": "verifier",
    "Weights": "training",
    "audit": "contract",
    "build_model": "models",
    "build_report": "report",
    "certify": "certifier",
    "compare": "comparison",
    "choose_groups": "search",
    "dataset_digest": "datasets.digest",
    "fit": "training",
    "inductive_view": "datasets.protocol",
    "load_certificate": "files",
    "load_dataset": "datasets.load",
    "load_model": "models",
    "load_tables": "datasets.tables",
    "save_figures": "report",
    "save_model": "models",
    "save_tables": "report",
    "verify": "verifier",
}

_PACKAGES = ("baselines",)  # for names such as ac.baselines.BiRS

__all__ = ["__version__", *sorted(_OWNER)]

if TYPE_CHECKING:
    from agnncert import baselines as baselines
    from agnncert.budget import Budget as Budget
    from agnncert.certificate import Certificate as Certificate
    from agnncert.certifier import certify as certify
    from agnncert.claim import Claim as Claim
    from agnncert.comparison import Comparison as Comparison
    from agnncert.comparison import compare as compare
    from agnncert.contract import AuditReport as AuditReport
    from agnncert.contract import audit as audit
    from agnncert.datasets.digest import dataset_digest as dataset_digest
    from agnncert.datasets.graphset import GraphSet as GraphSet
    from agnncert.datasets.load import load_dataset as load_dataset
    from agnncert.datasets.protocol import inductive_view as inductive_view
    from agnncert.datasets.tables import load_tables as load_tables
    from agnncert.division import Division as Division
    from agnncert.division import EdgeCentric as EdgeCentric
    from agnncert.division import NodeCentric as NodeCentric
    from agnncert.errors import AgnncertError as AgnncertError
    from agnncert.errors import BudgetError as BudgetError
    from agnncert.errors import CertificateError as CertificateError
    from agnncert.errors import DatasetError as DatasetError
    from agnncert.errors import DivisionError as DivisionError
    from agnncert.errors import GraphError as GraphError
    from agnncert.errors import IdError as IdError
    from agnncert.errors import ModelContractError as ModelContractError
    from agnncert.errors import NotCovered as NotCovered
    from agnncert.errors import SettingsError as SettingsError
    from agnncert.files import load_certificate as load_certificate
    from agnncert.models import build_model as build_model
    from agnncert.models import load_model as load_model
    from agnncert.models import save_model as save_model
    from agnncert.perturbation import Perturbation as Perturbation
    from agnncert.report import ReportContext as ReportContext
    from agnncert.report import build_report as build_report
    from agnncert.report import save_figures as save_figures
    from agnncert.report import save_tables as save_tables
    from agnncert.search import choose_groups as choose_groups
    from agnncert.training import Weights as Weights
    from agnncert.training import fit as fit
    from agnncert.verifier import Verdict as Verdict
    from agnncert.verifier import verify as verify


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"agnncert.{name}")
    if name not in _OWNER:
        raise AttributeError(f"module 'agnncert' has no attribute '{name}'")
    return getattr(importlib.import_module(f"agnncert.{_OWNER[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, *_PACKAGES]

from .build import build_report as build_report
from .papers import save_figures as save_figures
from .papers import save_tables as save_tables
from .summary import ReportContext as ReportContext

from .build import build_report as build_report
from .figures import save_figures as save_figures
from .summary import ReportContext as ReportContext
from .tables import save_tables as save_tables

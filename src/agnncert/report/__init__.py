"""The report: one HTML file that shows what is proved, and the same figures and tables for papers."""

from agnncert.report.build import build_report
from agnncert.report.figures import save_figures
from agnncert.report.summary import ReportContext
from agnncert.report.tables import save_tables

__all__ = ["ReportContext", "build_report", "save_figures", "save_tables"]

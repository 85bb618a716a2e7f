"""The report: one HTML file that shows what is proved, and the same figures and tables for papers."""

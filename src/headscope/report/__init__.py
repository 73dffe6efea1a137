"""The report of a run as one offline page, and its summary for a notebook."""

from headscope.report.build import build_report, render
from headscope.report.summary import run_summary

__all__ = ["build_report", "render", "run_summary"]

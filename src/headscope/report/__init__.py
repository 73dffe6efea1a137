"""The report of a run as one offline page: `build_report(tree, manifest, folder)`."""

from headscope.report.build import build_report, render

__all__ = ["build_report", "render"]

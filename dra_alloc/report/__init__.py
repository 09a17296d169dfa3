"""The report: one HTML file without network, with the map of the cluster and why each pending pod fits or not."""

from __future__ import annotations

from dra_alloc.report._page import render_report

__all__ = ["render_report"]

"""Trials that break headscope on purpose: faults, kills, wrong inputs; `python -m trials --help`.

Each counts what came of it. What it finds is mended, and kept where the suite meets it again.
"""

"""Experiments on models: fine-tuning, ablation, importance, comparison, probes, alignment."""

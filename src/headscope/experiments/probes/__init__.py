"""Can syntax be read off attention maps by a small trained probe, and off hidden states?

Nothing is imported here: `headscope.experiments.probes.probe` is the way in.
"""

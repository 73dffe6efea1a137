"""Papers, claim by claim: what was published, beside what our runs say of a model.

A paper is data: `clark2019`, `vig2019`, `kobayashi2020` list groups of claims in the paper's
order. `run_paper` computes the runs that they read and writes the folder; `zoo` tests claims made
of one model on a list of others.
"""

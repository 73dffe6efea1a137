"""How much does a loss depend on each head? Gradients of attention, and what is made of them.

examples ─► stream (∂loss/∂α of every layer, inside backward) ─► gather ─► result ─► a run
`attribution` integrates gradients from no attention to all of it; `correlation` holds all of that
against what switching a head off does.
"""

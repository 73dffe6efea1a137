"""How fast is headscope, and how much memory does it need? Measured, never asserted in tests.

python -m benchmarks.atlas     a table of ratios from one interleaved run
python -m benchmarks.memory    peak memory of the command line on 1,000 and on 20,000 documents
"""

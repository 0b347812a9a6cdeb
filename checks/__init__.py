"""The checks this project holds its own source to; ``python -m checks`` runs them all.

A check is a function from the root of a source tree to its findings, each a line *path:line: what is wrong*.
The tests in ``tests/checks`` show every check of ours failing on a bad tree and passing on a good one.
"""

"""The parity matrix: every documented example beside what became of it, with each kind of tensor and on the framework itself.

``cells`` says what is in it, ``from_examples`` and ``from_cases`` fill it; ``terminal``, ``as_json``, ``junit``, ``markdown`` and
``html`` show it.
"""

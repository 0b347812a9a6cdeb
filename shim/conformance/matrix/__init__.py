"""The parity matrix: every documented example beside what became of it, with each kind of tensor and on the framework itself.

``cells`` says what is in it, ``rows`` fills it; ``terminal``, ``as_json`` and ``files`` show it.
"""

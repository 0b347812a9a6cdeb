"""The tables of what runs on a CPU, by operation and by dtype, carried out again for this project: ``shim conformance tables``.

``cells`` says what a cell is, ``checks`` what one call must give and ``elements`` with which tensors; one module for each
API holds its cells. ``ranks`` is what happens on each rank, ``runner`` and ``report`` the run and what is told about it.
"""

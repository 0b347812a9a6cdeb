"""The tables of what runs on a CPU, by operation and by dtype, carried out again for this project: ``shim conformance tables``.

``cells`` says what a cell is and what is on record, ``checks`` what one call must give. ``in_place`` and two modules of MindSpore's hold the
calls, ``columns`` all cells.
"""

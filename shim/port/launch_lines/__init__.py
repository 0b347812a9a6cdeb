"""Port launch lines: ``torchrun --nproc_per_node 2 train.py`` becomes ``shim run -n 2 train.py``, or what the target's own launcher takes.

``texts`` takes texts and Python files, in which ``commands`` finds the lines. ``options`` reads them into a ``Launch``, which ``launchers`` writes again.
"""

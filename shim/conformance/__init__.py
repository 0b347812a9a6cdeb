"""The examples that the frameworks document, run on this machine: ``shim conformance``.

``examples`` are the frameworks' own, from their docstrings, and those in files; ``documents`` are five pages of the frameworks with cases of ours.
``plan`` chooses what is run of both, ``matrix`` shows what came of it, ``recording`` brings what is on record up to date. ``tables`` is another
run: one cell for every operation and dtype of every API, beside what the framework itself does. ``runner`` runs cases and cells, and
``report`` tells what became of them; ``signatures`` are compared, not run.
All of them share ``kinds`` of tensor, ``oracle``, what every collective must give, and ``assertions``.
"""

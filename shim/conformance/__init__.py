"""The examples that the frameworks document, run on this machine: ``shim conformance``.

``cases`` holds one module per document, ``kinds`` the tensors they run with, ``ranks`` what happens on each rank,
``oracle`` what every collective must give, ``runner`` and ``report`` the run and what is told about it. ``examples`` are the frameworks' own, from their docstrings;
``plan`` chooses what is run of both, and ``matrix`` shows it. ``tables`` is another run:
one cell for every operation and dtype of every API, beside what the framework itself does.
"""

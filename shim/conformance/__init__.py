"""The examples that the frameworks document, as cases that run on this machine: ``shim conformance``.

``cases`` holds one module per document, ``kinds`` the tensors they run with, ``ranks`` what happens on each rank,
``oracle`` what every collective must give, ``runner`` and ``report`` the run and what is told about it.
"""

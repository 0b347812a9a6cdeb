"""Five documents of the frameworks, each with cases in our own words, which run with every kind of tensor.

``cases`` holds one module per document, ``case`` what a document and a case are; ``ranks`` is what happens on each rank, ``runner`` and
``report`` are the run and what is told about it. ``reference`` runs the cases on the frameworks themselves.
"""

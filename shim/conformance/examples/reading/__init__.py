"""From documents to examples: nothing here runs any.

``docstrings`` finds those of the installed frameworks, ``files`` those of a user's documents, which ``passages`` takes apart. ``reader`` cuts a text into
examples and their steps; ``labels`` and ``world_sizes`` know how documents speak of ranks. ``cases`` are whole programs of a user's, with
``markers`` for comments.
"""

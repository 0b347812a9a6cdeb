"""From documents to examples: nothing here runs any.

``docstrings`` finds those of the installed frameworks, ``files`` takes a user's documents apart. ``reader`` cuts a text into examples and their
steps; ``labels`` knows how documents speak of ranks, ``printed_values`` how they show values. ``cases`` are whole programs of a user's, with
markers for comments.
"""

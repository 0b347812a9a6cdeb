"""The frameworks' own examples: read from the documentation that is installed, run as they are written, and judged.

``docstrings`` and ``files`` find them, ``reader`` takes them apart, ``runner`` runs them on rank processes (``rank`` is what
happens there), ``outputs`` compares what was seen with what the document shows, ``verdicts`` says what is known of each.
Nothing of a document's text is stored here.
"""

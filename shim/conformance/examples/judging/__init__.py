"""From what became of an example to a verdict on it, by what is on record.

``verdicts`` says what is on record (``recorded/``, ``inapplicable/``) and judges what ran on the frontends, ``reference_verdicts`` what ran on the
framework itself; ``applicability`` says which examples go with which kinds of tensor.
"""

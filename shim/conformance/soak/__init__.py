"""The soak: random sequences of calls in changing groups, each checked on every rank, bit by bit, against the oracle.

``operations`` and ``shared_tensors`` make one call and say what must come of it, with decisions of a ``Draw`` that are the same on all ranks.
``soak`` starts the ranks, says what they do, and puts together what they found.
"""

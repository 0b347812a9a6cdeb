"""The soak: random sequences of calls in changing groups, each checked on every rank, bit by bit, against the oracle.

``operations`` and ``shared_tensors`` make one call and say what must come of it, with decisions of a ``Draw`` that are the same on all ranks. ``rank`` is what
a rank process does, era by era; ``soak`` starts the ranks and puts together what they found.
"""

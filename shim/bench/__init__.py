"""The benchmark: this project's collectives beside other libraries', in one run; docs/performance.md says how to read it.

``session`` lets the contenders take turns, each a set of rank processes (``rank_set``, ``rank``) that sleeps while another is measured.
What a contender is stands in ``contenders``, how its library is called in ``libraries/``, and what is measured in ``cases``.
"""

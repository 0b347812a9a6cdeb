"""Examples on rank processes, on the frontends or on the framework itself.

``runner`` starts them and gathers what the ranks saw; ``rank`` is what happens in each. ``reference`` is the same with what the framework's launcher sets;
``programs`` start their ranks themselves.
"""

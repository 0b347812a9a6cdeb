"""Five documents of the frameworks, each with cases in our own words, which run with every kind of tensor.

``case`` says what a document and a case are; a module for each framework holds its documents. ``pages`` has all of them, and runs their
cases on the frontends and on the frameworks themselves.
"""

"""Commands that bring what is on record of a framework's examples up to date, for its version that is installed; a person looks at what they write.

``verdicts`` with the frontends, ``kinds`` of tensor that an example does not go with, ``reference`` on the framework itself.
"""

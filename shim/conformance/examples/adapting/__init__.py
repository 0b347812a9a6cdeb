"""What an example finds on this machine that its document takes as given, and what is changed in it for that; each change is told.

``devices`` that are not there, ``places`` that all programs share, the ``preparation`` that is left to the reader, and the ``surroundings`` of a program.
"""

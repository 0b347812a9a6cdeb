"""Examples: read from documents, run as they are written, and judged.

In the order of their way: ``reading`` makes an ``example`` of a text, ``adapting`` gives it what it needs on this machine, ``running`` runs it on
rank processes, ``border`` and ``conversion`` make other kinds of tensor of its own there, ``comparing`` says whether what was seen is what the document
shows, ``judging`` says whether that is what is on record. ``suite`` does all of it for the examples of a framework that are chosen by name, on
the frontends and on the framework itself. Nothing of a document's text is stored here.
"""

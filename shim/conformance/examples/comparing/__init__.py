"""What a rank saw beside what the document shows: ``outputs`` compares, ``differences`` counts how many there are for a record.

``handles`` finds what is shown before it has been waited for, so that no comparison of it says anything.
"""

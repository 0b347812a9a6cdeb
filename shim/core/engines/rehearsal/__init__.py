"""The engine of rehearsals, whose other ranks are not there."""

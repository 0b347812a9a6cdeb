"""The engine for ranks on one host; ``native/`` carries it out."""

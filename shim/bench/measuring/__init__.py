"""A run: the session in which all contenders take turns."""

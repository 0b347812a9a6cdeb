"""Mistakes that are planted in one rank of programs at random, which rehearsals have to find, and programs without any."""

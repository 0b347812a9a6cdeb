"""Rehearsals: each rank's program runs alone, in a world that is not there, and what all of them called is compared afterwards."""

"""The engines: what carries out the collectives of a group, and which of them does so for which group."""

"""Which functions, parameters, members and names of the APIs correspond: two tables, one for collectives, checked against ``shim.record``, and one for tensors."""

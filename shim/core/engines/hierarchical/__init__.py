"""The engine for several hosts with several ranks: shared memory within each host, gloo or MPI between them."""

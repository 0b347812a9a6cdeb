"""The link between ranks by MPI, and how the ranks of mpirun or srun meet."""

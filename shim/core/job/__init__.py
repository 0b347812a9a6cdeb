"""Who this process is among the ranks of its job, and where they meet."""

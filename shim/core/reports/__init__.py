"""Where the processes of a host are in their groups, and which of them wait for each other."""

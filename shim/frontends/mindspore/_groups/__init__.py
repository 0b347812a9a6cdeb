"""How processes get into the world and into groups, and the names and stores by which they find these."""

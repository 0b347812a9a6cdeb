"""Process groups as torch code sees them: which there are, and how they are made, divided and destroyed."""

"""What the engines for devices have in common: the ranks agree, and find each other, in host memory."""

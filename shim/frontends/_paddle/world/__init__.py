"""How a process gets into the world, what it can ask there, and Paddle's objects for that."""

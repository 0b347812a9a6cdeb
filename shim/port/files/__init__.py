"""Files on their way through a port: which a path means, whether they are worth parsing, reading and writing them without damage."""

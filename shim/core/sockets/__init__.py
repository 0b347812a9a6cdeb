"""What control connections and stores have in common: frames, one end of a connection, listening, and the thread that serves all of it."""

"""What the collectives and messages of the two Paddles do."""

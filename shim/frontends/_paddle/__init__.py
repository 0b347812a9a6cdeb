"""What the Paddle frontends of every version share: all but the functions whose signatures changed."""

"""What the engines over a network have in common: agreement, order, messages and waiting, over a link."""

"""What a run measures: the cases, the contenders, the machine's floor of each case, and the plan made of them."""

"""How each kind of use of a collective API is ported; and what all rules have in common: the port, the rewriting of a call, templates, imports."""

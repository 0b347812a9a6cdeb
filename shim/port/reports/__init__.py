"""A port's result as text for a terminal, as Markdown, JSON and SARIF."""

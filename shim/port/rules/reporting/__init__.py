"""What the port reports and does not change."""

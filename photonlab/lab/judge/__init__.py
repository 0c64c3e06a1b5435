"""What was published, what was recorded, and the rules that judge."""

"""A run while it continues: as a plan that lives, as lines, or as JSON."""

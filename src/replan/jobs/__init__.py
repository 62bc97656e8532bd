"""Jobs: a slot-filling engine that corrects itself."""

"""Files and records of the terminal: places, orders and their signatures, plans, logs."""

"""Files and records of a user: places, orders and their signatures, plans, logs."""

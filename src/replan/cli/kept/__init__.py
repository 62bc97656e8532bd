"""What the terminal keeps and reads again: places, orders and their signatures, plans, logs."""

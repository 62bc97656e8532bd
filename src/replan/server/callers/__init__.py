"""The callers of the server: tokens, the callers behind them, and their allowances."""

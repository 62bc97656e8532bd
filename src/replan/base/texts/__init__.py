"""The gate for texts of others: how large they may be, looked at before any parser reads them."""

"""The stored events of a run: numbered, long texts apart; and what is counted from them."""

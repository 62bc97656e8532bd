"""The events of a run as they are kept: numbered, with their long texts beside them."""

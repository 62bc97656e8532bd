"""What the page draws of a run, as values: places and words, no web in them."""

"""What happens in a run: events, callbacks, and the one place that reports them."""

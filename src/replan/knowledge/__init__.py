"""Knowledge for whoever works on a request: searched, and made shorter where that is asked."""

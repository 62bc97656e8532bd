"""Knowledge for a request: searched, and shortened if the options say so."""

"""How values are stored: which classes, and how encrypted."""

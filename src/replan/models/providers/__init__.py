"""Chat models by name, over HTTP, as their providers offer them."""

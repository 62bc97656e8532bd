"""Where knowledge is found."""

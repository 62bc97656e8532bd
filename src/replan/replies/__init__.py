"""What models say back: a small front matter and a body, read in every disguise."""

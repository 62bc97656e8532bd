"""What `replan new` writes: texts with `$names`, filled in and nothing more."""

"""`python -m replan`: the terminal, where its script is not on the path."""

from replan.cli.main import main

main()

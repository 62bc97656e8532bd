"""A program that is forked from the warm server in the place of this one: `warm.words_for`.

`python -I -S warm_program.py SOCKET WORDS...` gives it its streams, its folder and its environment,
waits for it and ends as it does. Where others start a program, this takes the place of Python.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import warm

environment = dict(os.environ)
os.environ[warm.ADDRESS] = sys.argv[1]
program = warm.Process(sys.argv[2:], stdin=0, stdout=1, stderr=2, env=environment)
sys.exit(program.wait(timeout=None))

"""What is declared of work: what it would do if it were done again."""

from typing import Literal

Effects = Literal["pure", "keyed", "unsafe"]
"""What a second run of the same work does to the outside.

- `pure`: nothing, it may run again whenever that is of use;
- `keyed`: nothing, because it hands an idempotency key on;
- `unsafe`: its effect again, so it is never silently run again.
"""

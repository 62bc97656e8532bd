"""Whether a bound has room: one rule for every journal."""

from replan.ports.journal import Bound, Refused, Spending

_KINDS = ("calls", "tokens", "cost")

ROUNDING = 1e-9
"""Sums of prices are not exact; a bound is not missed by the last bit of one."""


def first_refusal(
    bound: Bound, amount: Spending, charged: Spending, settled: Spending
) -> Refused | None:
    """Say which part of a bound has no room for an amount; none if all have.

    Args:
        bound: What the scope may spend.
        amount: What is to be charged.
        charged: What the scope has spent, unsettled reservations in full.
        settled: What of it is settled.
    """
    for kind in _KINDS:
        most = getattr(bound, kind)
        if most is None or getattr(charged, kind) + getattr(amount, kind) <= most + ROUNDING:
            continue
        return Refused(
            scope=bound.scope,
            kind=kind,
            bound=most,
            left=max(0.0, most - getattr(charged, kind)),
            spent=getattr(settled, kind),
        )
    return None

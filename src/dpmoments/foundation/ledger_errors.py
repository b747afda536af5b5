"""What a ledger says where it cannot do what it is asked."""

__all__ = ["BudgetExceededError", "LedgerError"]


class LedgerError(RuntimeError):
    """A ledger cannot be used as asked: its file is locked, damaged, foreign, newer or gone, or its history contradicts itself.

    Nothing was spent by what was asked for.
    """


class BudgetExceededError(LedgerError):
    """A release would pass the budget that its dataset was granted, or is of a kind that the grant cannot count."""

"""Budgets of datasets over many releases: grants, what releases spend of them, and the file that keeps both."""

from dpmoments.foundation.errors import BudgetExceededError, LedgerError
from dpmoments.ledger.amounts import Amount
from dpmoments.ledger.grants import Composition, Grant, GrantKind
from dpmoments.ledger.ledger import Ledger
from dpmoments.ledger.verification import LedgerCheck

__all__ = [
    "Amount",
    "BudgetExceededError",
    "Composition",
    "Grant",
    "GrantKind",
    "Ledger",
    "LedgerCheck",
    "LedgerError",
]

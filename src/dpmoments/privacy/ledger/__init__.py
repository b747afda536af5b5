"""Budgets of datasets over many releases: grants, what releases spend of them, and the file that keeps both."""

from dpmoments.privacy.ledger.amounts import Amount
from dpmoments.privacy.ledger.errors import BudgetExceededError, LedgerError
from dpmoments.privacy.ledger.grants import Composition, Grant, GrantKind
from dpmoments.privacy.ledger.ledger import Ledger
from dpmoments.privacy.ledger.verification import LedgerCheck

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

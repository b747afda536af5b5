"""Privacy budgets of datasets over many releases, kept in a ledger file."""

from dpmoments.foundation.errors import BudgetExceededError, LedgerError
from dpmoments.ledger.grants import Amount as Amount
from dpmoments.ledger.grants import Composition as Composition
from dpmoments.ledger.grants import Grant as Grant
from dpmoments.ledger.grants import GrantKind as GrantKind
from dpmoments.ledger.ledger import Ledger
from dpmoments.ledger.ledger import LedgerCheck as LedgerCheck

__all__ = ["BudgetExceededError", "Ledger", "LedgerError"]

"""Empirical lower bounds on ε: every mechanism, its own ``run``, on the neighbours where it is hardest pressed."""

from dpmoments.audit.exact import bingham_epsilon, noise_epsilon
from dpmoments.audit.pairs import NeighboringPair, neighboring_pairs
from dpmoments.audit.procedure import audit
from dpmoments.audit.replay import replay, replay_everywhere, replay_on_any_table
from dpmoments.audit.results import AuditEffort, AuditResult
from dpmoments.audit.settings import audit_plan
from dpmoments.audit.statistics import epsilon_lower_bound

__all__ = [
    "AuditEffort",
    "AuditResult",
    "NeighboringPair",
    "audit",
    "audit_plan",
    "bingham_epsilon",
    "epsilon_lower_bound",
    "neighboring_pairs",
    "noise_epsilon",
    "replay",
    "replay_everywhere",
    "replay_on_any_table",
]

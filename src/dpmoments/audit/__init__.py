"""Empirical lower bounds on ε, from runs on the worst neighboring tables."""

from dpmoments.audit.events import epsilon_lower_bound as epsilon_lower_bound
from dpmoments.audit.exact import bingham_epsilon as bingham_epsilon
from dpmoments.audit.exact import noise_epsilon as noise_epsilon
from dpmoments.audit.pairs import NeighboringPair as NeighboringPair
from dpmoments.audit.pairs import neighboring_pairs as neighboring_pairs
from dpmoments.audit.procedure import AuditEffort as AuditEffort
from dpmoments.audit.procedure import AuditResult, audit
from dpmoments.audit.procedure import audit_plan as audit_plan
from dpmoments.audit.replay import replay as replay
from dpmoments.audit.replay import replay_everywhere
from dpmoments.audit.replay import replay_on_any_table as replay_on_any_table

__all__ = ["AuditResult", "audit", "replay_everywhere"]

from dpmoments import datasets as datasets
from dpmoments import mechanisms as mechanisms
from dpmoments import noise as noise
from dpmoments import privacy as privacy
from dpmoments import rows as rows
from dpmoments.base.databases import DatabaseQuery as DatabaseQuery
from dpmoments.base.errors import BudgetExceededError as BudgetExceededError
from dpmoments.base.errors import LedgerError as LedgerError
from dpmoments.base.table_files import EngineFiles as EngineFiles
from dpmoments.base.text_files import TextFormat as TextFormat
from dpmoments.papers import bounds
from dpmoments.papers import metrics as metrics
from dpmoments.planning.forecast import forecast as forecast
from dpmoments.planning.forecast import forecast_counts as forecast_counts
from dpmoments.planning.forecast import forecast_mean as forecast_mean
from dpmoments.planning.preflight import Preflight as Preflight
from dpmoments.planning.preflight import preflight as preflight
from dpmoments.privacy.budget import PrivacyBudget as PrivacyBudget
from dpmoments.privacy.ledger import Ledger as Ledger
from dpmoments.privacy.unit import Neighbors as Neighbors
from dpmoments.privacy.unit import PrivacyUnit as PrivacyUnit
from dpmoments.releases.counts_release import CountsRelease as CountsRelease
from dpmoments.releases.disclosed import ReleaseWarning as ReleaseWarning
from dpmoments.releases.group_releases import GroupReleases as GroupReleases
from dpmoments.releases.loading import load as load
from dpmoments.releases.mean_release import MeanRelease as MeanRelease
from dpmoments.releases.moment_release import MomentRelease as MomentRelease
from dpmoments.releases.pooling import PooledRelease as PooledRelease
from dpmoments.releases.pooling import pool as pool
from dpmoments.reporting.report import report as report
from dpmoments.schema.columns import Boolean as Boolean
from dpmoments.schema.columns import Categorical as Categorical
from dpmoments.schema.columns import Coordinate as Coordinate
from dpmoments.schema.columns import Numeric as Numeric
from dpmoments.schema.columns import SamplingWeight as SamplingWeight
from dpmoments.schema.dates import Date as Date
from dpmoments.schema.derived import Power as Power
from dpmoments.schema.derived import Product as Product
from dpmoments.schema.schema import Schema as Schema
from dpmoments.spending.release import release as release
from dpmoments.spending.release import release_counts as release_counts
from dpmoments.spending.release import release_groups as release_groups
from dpmoments.spending.release import release_mean as release_mean
from dpmoments.spending.run import UnsavedReleaseError as UnsavedReleaseError

utility_bounds = bounds
__version__: str

"""Parts shared by several estimators of means."""

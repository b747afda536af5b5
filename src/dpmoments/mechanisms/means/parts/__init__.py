"""What several estimators of means share."""

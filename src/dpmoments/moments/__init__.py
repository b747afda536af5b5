"""Distributions of the noise of released moments, and their repair."""

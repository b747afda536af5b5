"""Releases: moments, means, groups, pools; loading them, and statements about them."""

"""Pages to read a release, or to plan one, offline in a browser.

Consumers of releases and forecasts.
"""

"""Pages to read a release, or to plan one, offline in a browser: consumers of releases and forecasts."""

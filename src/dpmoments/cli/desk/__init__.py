"""``dpmoments desk``: the steps of a curator as pages of a local web server."""

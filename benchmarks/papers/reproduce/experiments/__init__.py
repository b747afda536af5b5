"""How one trial of one point is measured: each module has ``measure(point, methods)``, which yields label, metric and value."""

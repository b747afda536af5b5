"""Post-processing: everything computed from a release, at no privacy cost."""

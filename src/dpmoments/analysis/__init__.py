"""Post-processing: everything computed from a release alone, at no privacy cost."""

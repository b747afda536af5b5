"""Parts shared by several mechanisms."""

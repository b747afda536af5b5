"""Pictures of releases, each with the noise beside what it shows; matplotlib is imported when the first is drawn."""

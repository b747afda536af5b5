"""What the source papers define and no default uses: mechanisms, bounds, metrics and data sets."""

"""Files of several subjects."""

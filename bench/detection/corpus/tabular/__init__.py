"""Tables, lists, series."""

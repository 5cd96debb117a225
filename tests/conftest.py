"""What every test below has: a limit of time, so that one that hangs fails alone."""
pytest_plugins = ["tests.support.hanging"]

"""How long a test waits for what has to come: longer where the machine has more to do than it can.

A wait that ends well ends at once, so patience costs only tests that fail. What a user is promised in seconds is not waited for so.
"""
import os

MOST = 4.0


def patience(seconds):
    """`seconds` on a quiet machine, up to four times as many on one with four times as much to run as it has processors."""
    return seconds * min(MOST, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))

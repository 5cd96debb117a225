"""What jobs that are scripts share, and what the names of their faults mean."""

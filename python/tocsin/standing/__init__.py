"""The thread that says where this process stands."""

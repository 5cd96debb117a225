"""The training loop: its steps and phases, and the sink that adapters of frameworks tell of them."""

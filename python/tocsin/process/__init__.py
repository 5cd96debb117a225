"""The process that trains: its facts, its one open hook, how it ends, and how errors of ours stay out of it."""

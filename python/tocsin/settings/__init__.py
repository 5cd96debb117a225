"""What the user gave: options of the hook, collections, rules, and configurations of the original."""

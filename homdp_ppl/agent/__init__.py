"""Learning in a live system: an agent that acts, and learns when states are revealed later."""

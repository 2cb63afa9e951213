"""Core data types: spaces, POMDPs, policies, episodes, counts and plans."""

"""Values: spaces, POMDPs, policies, episodes, counts, plans."""

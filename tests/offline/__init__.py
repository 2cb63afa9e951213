"""Tests of recorded episodes: evaluation and choice of policies."""

"""Tests of hindsight posteriors."""

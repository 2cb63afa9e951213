"""Tests of confidence sets."""

"""Tests of continuous spaces."""

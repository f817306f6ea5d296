"""Modules of `scripts/docs.sh`; see README.md."""

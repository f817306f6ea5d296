"""What `scripts/docs.sh` is made of; see README.md."""

"""Every call of the two HTTP APIs: what is sent, and how its answer is read. No input or output."""

"""The servers of the small internet. They run as programs of their own, inside a namespace."""

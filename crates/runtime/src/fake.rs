//! A strict runtime without processes, for tests and dry runs.

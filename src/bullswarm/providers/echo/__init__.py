"""Echo: a worker that does what its prompt says, for tests and for trying things out."""

"""The live page: type a text, see every head, switch some off; and a run's pages, over HTTP."""

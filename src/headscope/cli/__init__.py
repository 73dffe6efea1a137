"""The command line; nothing heavy is imported before a command needs it."""

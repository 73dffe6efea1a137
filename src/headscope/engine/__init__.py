"""Where shards are computed."""

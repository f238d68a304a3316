"""What each request leaves behind: metrics, a line in the log, a warning, a span."""

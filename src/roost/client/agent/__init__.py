"""The agent: reports a host at every interval, and runs as a service of systemd."""

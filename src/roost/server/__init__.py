"""The HTTP server of `roost serve`: processes, connections, threads. It knows WSGI only."""

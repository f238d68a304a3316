"""The pages under `/ui/`: files for a browser, which talks to the public API only."""

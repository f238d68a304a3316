"""The other half of a placement service: how a host describes itself. Talks HTTP only."""

"""Roost: a placement service that speaks the OpenStack Placement API."""

__version__ = "0.1.0"

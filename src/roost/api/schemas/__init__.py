"""What each request may look like, version by version.

Every schema stands whole beside the version from which it holds; nothing is derived from an
older one by changing it.
"""

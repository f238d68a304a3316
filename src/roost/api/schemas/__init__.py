"""The schemas of bodies and query strings, version by version.

Each schema is written out whole beside its first version. No schema changes an older one.
"""

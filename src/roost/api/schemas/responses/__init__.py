"""The schemas of answers, version by version, one module for each noun.

No request is checked against them. The OpenAPI document shows them, and tests hold the answers of
the service against them.
"""

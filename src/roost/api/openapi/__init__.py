"""The OpenAPI document of the service, made from the route table and the schemas.

`operations/` says about each route what the table and the schemas do not: its purpose in words, its
answers, examples. `document.py` joins all of it.
"""

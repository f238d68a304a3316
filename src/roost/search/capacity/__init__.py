"""Capacity: how many consumers with one query the forest can hold.

A sequence of claims reaches a number of consumers exactly if so many solutions fit into the stock
together: claims only take, so a solution that fits at the end fits at every earlier moment.

    parts.py         parts of the plan: slots of different parts neither take from one inventory nor
                     know of each other, so a tree holds the smallest count of its parts. Units:
                     how many allocations of a requirement the stock of a provider holds
    part_counts.py   the count of a part in all trees of a block by whole columns, where each
                     requirement counts by itself, or below the provider that heads a subtree
    program.py       how many patterns fit into a stock, or into those of many trees at once:
                     bounds, and a search between them
    linked.py        trees in which the requirements of a part depend on each other: the patterns
                     that their solutions take from the stock, and bounds where they take from pools
    part_counter.py  one part: counted where possible, packed elsewhere, and its pools
    pools.py         trees that take from the same sharing providers: a flow
    limiting_classes.py
                     the classes of which more lets more in: counted again with plenty of them
    finding.py       `find_capacity`: all of it together
    capacity.py      the answer
    fragmentation.py what is free of each class, and what of it queries can use

Words: a stock is what is free of some inventories (room is that for one more allocation). Units are
how many allocations of one requirement a stock holds. A part is linked in a tree if its
requirements compete for the stock of a provider there. A pool is a sharing provider, seen as a
stock from which several trees take.
"""

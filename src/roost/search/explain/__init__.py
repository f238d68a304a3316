"""Why a query has candidates or none: what each stage leaves, and what a tree lacks."""

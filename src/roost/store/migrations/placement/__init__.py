"""The reference's revisions, with its ids; what each did is in its documentation."""

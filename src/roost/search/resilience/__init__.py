"""Whether the rest of the cloud could take what a lost tree holds."""

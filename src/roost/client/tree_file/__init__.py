"""Tree files: declarations of providers in YAML or JSON."""

from roost.client.tree_file.files import (
    STANDARD_INPUT,
    TreeFile,
    TreeFileError,
    parse_tree_file,
    read_tree_file,
    render_tree_file,
)

__all__ = [
    "STANDARD_INPUT",
    "TreeFile",
    "TreeFileError",
    "parse_tree_file",
    "read_tree_file",
    "render_tree_file",
]

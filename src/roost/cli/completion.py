"""The command `roost completion`, and what bash needs besides click's own mechanism."""

from __future__ import annotations

import os
import re
from typing import Any, ClassVar

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

PROGRAM = "roost"
VARIABLE = "_ROOST_COMPLETE"
"""The variable by which a script asks for completions."""

_SCRIPT = """\
%(complete_func)s() {
    local IFS=$'\\n' line type value
    COMPREPLY=()
    for line in $(env ROOST_COMP_LINE="${COMP_LINE:0:$COMP_POINT}" \\
        ROOST_COMP_WORDBREAKS="$COMP_WORDBREAKS" %(complete_var)s=bash_complete "$1" 2>/dev/null)
    do
        type=${line%%%%,*}
        value=${line#*,}
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("$value") ;;
        esac
    done
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class RoostBash(BashComplete):
    """Completion for bash, which splits words at colons as well: names of PCI devices have them."""

    source_template: ClassVar[str] = _SCRIPT

    def source(self) -> str:
        """The script; bash itself need not be there to print it."""
        return self.source_template % self.source_vars()

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the cursor, and the word that is not complete."""
        line = os.environ.get("ROOST_COMP_LINE", "")
        words = split_arg_string(line)[1:]
        incomplete = "" if not words or line[-1:].isspace() else words.pop()
        return words, incomplete

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """A line for the script: what bash puts in place of its own last word."""
        _, incomplete = self.get_completion_args()
        kept = re.escape("".join(set(os.environ.get("ROOST_COMP_WORDBREAKS", "")) & set(":=")))
        known = re.match(f".*[{kept}]", incomplete) if kept else None
        value = str(item.value)
        if known and value.startswith(known[0]):
            value = value[len(known[0]) :]
        return f"{item.type},{_escaped(value)}"


def _escaped(value: str) -> str:
    r"""A value as a person types it in bash.

    >>> print(_escaped("rack 1 (old)"))
    rack\ 1\ \(old\)
    """
    return re.sub(r"([^\w@%+=:,./~-])", r"\\\1", value)


def use_completion() -> None:
    """Let click answer the scripts of this module."""
    add_completion_class(RoostBash, "bash")


@click.command(
    short_help="Print the completion script of a shell.",
    epilog="""\b
Examples:
  source <(roost completion bash)
  roost completion bash > ~/.local/share/bash-completion/completions/roost
  roost completion zsh > "${fpath[1]}/_roost"
  roost completion fish > ~/.config/fish/completions/roost.fish
""",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that completes commands, options and the names on the server.

    The shell asks the server of $ROOST_URL, or the one that the options of the line name. A
    server that does not answer completes no names.
    """
    use_completion()
    kind: Any = get_completion_class(shell)
    click.echo(kind(context.find_root().command, {}, PROGRAM, VARIABLE).source().rstrip())

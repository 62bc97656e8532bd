"""`replan completion`: the script with which a shell completes commands and options."""

import os
from typing import Annotated, Literal

import typer

_VARIABLE = "_REPLAN_COMPLETE"


def completion(
    context: typer.Context,
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="Your shell.")],
) -> None:
    """Print the script that completes commands and options in your shell.

    bash: eval "$(replan completion bash)" in ~/.bashrc

    zsh: eval "$(replan completion zsh)" in ~/.zshrc, after compinit

    fish: replan completion fish > ~/.config/fish/completions/replan.fish
    """
    # Typer prints the script when the program is asked for it in this way, as each TAB asks.
    os.environ[_VARIABLE] = f"source_{shell}"
    context.find_root().command.main(prog_name="replan", complete_var=_VARIABLE)

"""`tidemark completion`: the script by which a shell completes commands and options."""

from __future__ import annotations

from typing import Final

import click

SHELLS: Final = ("bash", "zsh", "fish")
VARIABLE: Final = "_TIDEMARK_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the script by which a shell completes commands, options and their values.

    \b
    Examples:
      tidemark completion bash > ~/.local/share/bash-completion/completions/tidemark
      tidemark completion zsh > ~/.zfunc/_tidemark
      tidemark completion fish > ~/.config/fish/completions/tidemark.fish
    """  # noqa: D301 - click's \b keeps the lines of the examples apart
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - keeps `--help` fast

    # `source` would start the shell to learn its version: the script is the same for all.
    shell_class = get_completion_class(shell)
    if shell_class is None:
        raise click.UsageError(f"{shell} cannot complete")
    completion = shell_class(ctx.find_root().command, {}, "tidemark", VARIABLE)
    click.echo(completion.source_template % completion.source_vars())

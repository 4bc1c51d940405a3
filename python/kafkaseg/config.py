"""Configuration by Kafka's names: from mappings, `.properties` files and keyword arguments."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafkaseg import _native

if TYPE_CHECKING:
    Value = str | int | float | bool | list[str] | tuple[str, ...]
    Config = Mapping[str, Value] | str | os.PathLike[str] | None

__all__: list[str] = []


def pairs(config: Config, options: Mapping[str, Value]) -> dict[str, str]:
    """One dict of Kafka's names; keyword arguments have underscores for dots and win."""
    if config is None:
        named: dict[str, str] = {}
    elif isinstance(config, Mapping):
        named = {name: text(value) for name, value in config.items()}
    else:
        named = dict(_native.read_properties(os.fspath(config)))
    named.update({name.replace("_", "."): text(value) for name, value in options.items()})
    return named


def text(value: Value) -> str:
    """A value as a `.properties` file would have it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(value)
    return str(value)

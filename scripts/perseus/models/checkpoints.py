"""Find the weights of a neural network in a checkpoint, even if a training tool has changed their
names.

DataParallel and AveragedModel put `module.` before each name, and torch.compile puts `_orig_mod.`.
FSDP and activation checkpointing add other prefixes, and Lightning adds the name of an attribute.
Lightning, timm and other tools store the state_dict beside epochs, optimisers and a moving average
(EMA) of the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

WRAPPERS: Final = frozenset(
    {"module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"}
)
"""Parts of a weight's name that come from wrappers of the network or of its modules."""
COUNTS: Final = frozenset({"n_averaged"})
"""Names of other values that AveragedModel stores beside the weights."""

State = Mapping[str, Any]


class CheckpointError(ValueError):
    """Error: a checkpoint has no weights of the network, or several sets of weights. The message
    says what to do."""


class Found(NamedTuple):
    """Weights of a network in a checkpoint.

    `key` is the key of the state_dict, empty if the checkpoint itself is the state_dict. `prefix`
    is the part of each name in the checkpoint that precedes the name of the weight in the network.
    """

    key: str
    prefix: str
    state: State

    @property
    def description(self) -> str:
        parts = [f"key {self.key!r}"] if self.key else []
        prefix = [f"prefix {self.prefix!r}"] if self.prefix or not self.key else []
        return " ".join([*parts, *prefix])


def state_dicts(loaded: State, is_tensor: Callable[[Any], bool]) -> dict[str, State]:
    """Return the state_dicts of a checkpoint by key; the key is "" if the checkpoint is a
    state_dict itself."""
    if all(map(is_tensor, loaded.values())):
        return {"": loaded}
    return {
        key: part
        for key, part in loaded.items()
        if isinstance(part, Mapping)
        and part
        and all(isinstance(name, str) and is_tensor(value) for name, value in part.items())
    }


def weights_of(states: Mapping[str, State], names: Collection[str], path: Path) -> State:
    """Return the weights in a checkpoint under the names of the network.

    If no state_dict has all names, and there is only one state_dict, the function returns this
    state_dict unchanged.

    Raises CheckpointError if several sets of weights have all names, or if none of several
    state_dicts has all names. The message says how to save one set.
    """
    found = [each for key, state in states.items() for each in _with(key, state, names)]
    if len(found) == 1:
        return found[0].state
    if not found and len(states) == 1:
        return next(iter(states.values()))
    if not found:
        raise CheckpointError(
            f"{path} holds the state_dicts {', '.join(map(repr, states))}, and none has the names"
            " of the network. Save the one to serve with torch.save(model.state_dict(), path)."
        )
    first = found[0]
    part = f"torch.load({path.name!r}){f'[{first.key!r}]' if first.key else ''}"
    kept = (
        f"{{k.removeprefix({first.prefix!r}): v for k, v in {part}.items()"
        f" if k.startswith({first.prefix!r})}}"
        if first.prefix
        else part
    )
    several = "; ".join(each.description for each in found)
    raise CheckpointError(
        f"{path} holds several sets of weights of the network: {several}."
        f" Keep one, such as: torch.save({kept}, 'one.pt')"
    )


def _with(key: str, state: State, names: Collection[str]) -> Iterator[Found]:
    """Yield one entry for each prefix under which a state_dict has all of the names."""
    plain = {_plain(name): value for name, value in state.items() if name not in COUNTS}
    if len(plain) < len(state.keys() - COUNTS):  # without wrappers, two weights share a name
        plain = dict(state)
    one = next(iter(names))
    prefixes = [name.removesuffix(one) for name in plain if f".{name}".endswith(f".{one}")]
    for prefix in prefixes:
        if all(prefix + name in plain for name in names):
            under = {
                name.removeprefix(prefix): value
                for name, value in plain.items()
                if name.startswith(prefix)
            }
            yield Found(key, prefix, under)


def _plain(name: str) -> str:
    return ".".join(part for part in name.split(".") if part not in WRAPPERS)

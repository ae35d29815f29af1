"""Find the weights of a neural network in a checkpoint, even if a training tool has renamed them.

DataParallel and AveragedModel put `module.` before the name of each weight, and torch.compile puts
`_orig_mod.` there. FSDP and activation checkpointing insert other prefixes into the names of
weights. In a checkpoint of Lightning, the name of each weight begins with the attribute that holds
the network. Lightning, timm and other tools store the state_dict together with epochs, optimisers
and a moving average (EMA) of the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

WRAPPERS: Final = frozenset(
    {"module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"}
)
"""Names that wrappers of a network, such as DataParallel, insert into the names of its weights."""
COUNTS: Final = frozenset({"n_averaged"})
"""Names of the counters that AveragedModel adds to a state_dict. Counters are not weights."""

State = Mapping[str, Any]


class CheckpointError(ValueError):
    """Error: a checkpoint has no weights of the network, or has the weights several times.

    The message says what to do.
    """


class Found(NamedTuple):
    """One complete set of a network's weights in a checkpoint.

    `key` is the key of the state_dict in the checkpoint; empty if the checkpoint itself is the
    state_dict. The name of each weight in the checkpoint is `prefix` followed by the name of the
    weight in the network.
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
    """Return the state_dicts of a checkpoint by their keys; the key is "" if the checkpoint itself
    is a state_dict."""
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
    """Return the weights of a network from the state_dicts of a checkpoint.

    `names` has the names of all weights of the network. The result contains the weights under these
    names. If there is only one state_dict, and it lacks some of the `names`, the function returns
    the state_dict unchanged, so that the caller can report the missing weights.

    Raises CheckpointError if the checkpoint contains the weights of the network several times. Also
    raises CheckpointError if none of several state_dicts contains all `names`. The message says how
    to save the right weights.
    """
    found = [each for key, state in states.items() for each in _with(key, state, names)]
    if len(found) == 1:
        return found[0].state
    if not found and len(states) == 1:
        return next(iter(states.values()))
    if not found:
        raise CheckpointError(
            f"{path} contains the state_dicts {', '.join(map(repr, states))}, but none of them"
            " contains all weights of the network. Write a file with only the weights of the"
            " network: torch.save(model.state_dict(), path)."
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
        f"{path} contains the weights of the network several times: {several}. Write a file with"
        f" only one of them, for example: torch.save({kept}, 'one.pt')"
    )


def _with(key: str, state: State, names: Collection[str]) -> Iterator[Found]:
    """Yield each set of weights that has all `names` in a state_dict, with a common prefix."""
    plain = {_plain(name): value for name, value in state.items() if name not in COUNTS}
    if len(plain) < len(state.keys() - COUNTS):  # two names differ only in their wrappers
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

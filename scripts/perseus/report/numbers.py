"""Write numbers and lists as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

MAX_DIGITS = 16
"""A text has at most this many significant digits, since a floating-point number has no more."""


def percent(share: float) -> str:
    """Return a share as text in percent, such as "3.1 %" for 0.0312. A percentage of at least 10 is
    a whole number."""
    digits = 0 if abs(share) >= 0.0995 else 1
    return f"{100 * share:.{digits}f} %".replace("-", "\N{MINUS SIGN}")


def percent_below(share: float, bound: float) -> str:
    """Return `share` as text in percent. If `share` is below `bound`, the text has so many digits
    that the rounded number is below `bound`, too."""
    digits = next((n for n in range(MAX_DIGITS) if round(share, n + 2) < bound), 0)
    return f"{100 * share:.{digits}f} %" if digits else percent(share)


def bounds(low: float, high: float, write: Callable[[float], str]) -> str:
    """Return an interval as text, such as "11.9 to 12.8". With one infinite end, the text is "at
    least 11.9" or "at most 12.8", and with two infinite ends, "no bound"."""
    if math.isinf(low) or math.isinf(high):
        if math.isinf(low) and math.isinf(high):
            return "no bound"
        return f"at most {write(high)}" if math.isinf(low) else f"at least {write(low)}"
    return f"{write(low)} to {write(high)}"


def chance(probability: float) -> str:
    """Return a probability as text, such as "0.974" or "> 0.999"."""
    if probability > 0.999:
        return "> 0.999"
    return "< 0.001" if probability < 0.001 else f"{probability:.3f}"


def likely(probability: float) -> str:
    """Return a probability as text, such as "97 %" or "over 99 %"."""
    return "over 99 %" if probability > 0.99 else f"{100 * probability:.0f} %"


def sure(probability: float) -> str:
    """Return a probability as text, such as "97 % sure" or "over 99 % sure"."""
    return f"{likely(probability)} sure"


def counted(number: int | str, noun: str) -> str:
    """Return a number with its noun, for example "1 run" or "2 runs"."""
    return f"{number} {noun}" if str(number) == "1" else f"{number} {noun}s"


def usd(amount: float) -> str:
    """Return an amount as text such as "$34.7"."""
    return f"${significant(amount)}"


def significant(value: float | None) -> str:
    """Return a number as text with three significant digits, or an en dash if the number is
    missing.

    Numbers below 0.0001 have an exponent.
    """
    if value is None or math.isnan(value):
        return "\N{EN DASH}"
    if math.isinf(value):
        return "\N{INFINITY}"
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    if magnitude < -4:
        mantissa, exponent = f"{value:.2e}".split("e")
        text = f"{mantissa}e{int(exponent)}"
    else:
        text = f"{value:.{max(2 - magnitude, 0)}f}"
    return text.replace("-", "\N{MINUS SIGN}")


def listed(names: Sequence[str]) -> str:
    """Return a list of words as text: "a", "a and b", or "a, b and c"."""
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)

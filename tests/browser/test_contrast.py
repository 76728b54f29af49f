"""Text reaches 4.5:1 (WCAG 2.2 AA) on every surface that it can sit on, control outlines 3:1, in both themes."""

import re
from pathlib import Path

import pytest

TOKENS = Path(__file__).resolve().parents[2] / "static" / "src" / "css" / "parts" / "tokens.css"

SURFACES = ("bg", "sf", "acb", "add", "del", "ren")
TEXT = ("tx", "mt", "ac", "addt", "delt")
SYNTAX = ("v", "o", "l", "t", "k", "n", "s")
# Words that changed inside a line carry code, never muted text.
WORD_SURFACES = ("addw", "delw")


def tokens(theme: int) -> dict[str, str]:
    found = re.findall(r"--(\w+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", TOKENS.read_text())
    return {name: colours[theme] for name, *colours in found}


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


PAIRS = [
    *((text, surface) for text in (*TEXT, *SYNTAX) for surface in SURFACES),
    *((text, surface) for text in ("tx", *SYNTAX) for surface in WORD_SURFACES),
    ("act", "ac"),
    ("bg", "tx"),
]


def test_contrast_of_black_and_white() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("text", "surface"), PAIRS)
def test_text_is_readable(theme: int, text: str, surface: str) -> None:
    colours = tokens(theme)
    assert contrast(colours[text], colours[surface]) >= 4.5


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("surface", ["bg", "sf"])
@pytest.mark.parametrize("line", ["lc", "ac"])
def test_outlines_of_controls_are_visible(theme: int, line: str, surface: str) -> None:
    colours = tokens(theme)
    assert contrast(colours[line], colours[surface]) >= 3


def test_every_colour_has_both_themes() -> None:
    named = set(re.findall(r"^  --(\w+): (?!\")", TOKENS.read_text(), re.MULTILINE)) - {"radius", "bar", "sans", "mono"}
    assert named == set(tokens(0)) == set(tokens(1))

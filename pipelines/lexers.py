"""Colours for IR: Pygments lexers for MLIR, LLVM IR, PTX, SASS and AMDGCN, and HTML that needs no script.

No token of these lexers spans lines, and no pattern can take more than linear time: what could fail late is possessive
or matches up to the line's end.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from html import escape

from pygments.lexer import Lexer, RegexLexer
from pygments.lexers.python import PythonLexer
from pygments.lexers.special import TextLexer
from pygments.token import Comment, Keyword, Name, Number, Punctuation, String, Text, Whitespace, _TokenType

from pipelines.trace import Syntax

# The browser's highlighter uses the same classes: values, operations, layouts and aliases, types, keywords, numbers,
# strings and labels, comments. What is in none of them has the colour of text.
CLASSES: dict[_TokenType, str] = {
    Name.Variable: "tok-v",
    Name.Function: "tok-o",
    Name.Builtin: "tok-o",
    Name.Decorator: "tok-l",
    Keyword.Type: "tok-t",
    Name.Class: "tok-t",
    Keyword: "tok-k",
    Number: "tok-n",
    String: "tok-s",
    Name.Label: "tok-s",
    Comment: "tok-c",
}

# Past these bounds, in characters, text stays plain: Pygments reads it in two seconds.
MAX_LINE = 20_000
MAX_TEXT = 1 << 20

_SPACE = [(r"[^\S\n]+", Whitespace), (r"\n", Whitespace)]
_STRING = (r'"(?:[^"\\\n]|\\.)*+"?', String)
_LINE_COMMENT = (r"//[^\n]*", Comment.Single)
_BLOCK_COMMENT = (r"/\*(?:[^*\n]|\*(?!/))*+(?:\*/)?", Comment.Multiline)
_REST = [(r"[\[\](){}<>=,:;|*+?&@!~]+|->|[-/.]", Punctuation), (r"[^\n]", Text)]

_WORD_END = r"(?![\w.$])"
# A structure of 128 floats is one token, not 255.
_SCALAR = rf"(?:[su]?i\d+|bf16|tf32|f\d+(?:E\d+M\d+\w*)?|ptr(?:<\d+>)?){_WORD_END}"
_SHAPED = rf"(?:tensor|memref|vector|tuple|complex|index|none){_WORD_END}"
_KEYWORD = (
    r"(?:module|func|return|attributes|public|private|to|step|iter_args|else|do|into|dense|array|true|false|unit)"
    rf"{_WORD_END}"
)
_LLVM_TYPE = rf"(?:i\d+|half|bfloat|float|double|fp128|ptr|void|label|metadata|token){_WORD_END}"
_LLVM_INSTRUCTION = (
    r"(?:ret|br|switch|invoke|resume|unreachable|[us]?(?:div|rem)|f?(?:add|sub|mul|neg|div|rem|cmp)|shl|[la]shr|and|or|xor"
    r"|icmp|(?:extract|insert)(?:element|value)|shufflevector|alloca|load|store|fence|cmpxchg|atomicrmw|getelementptr|trunc"
    r"|[zs]ext|fptrunc|fpext|fpto[us]i|[us]itofp|ptrtoint|inttoptr|bitcast|addrspacecast|phi|select|freeze|call|va_arg"
    rf"|define|declare){_WORD_END}"
)


class MlirLexer(RegexLexer):
    """MLIR's textual form, with operations, types and attributes of any dialect."""

    name = "MLIR"
    aliases = ["mlir"]  # noqa: RUF012 - Pygments declares it so
    filenames = ["*.mlir", "*.ttir", "*.ttgir"]  # noqa: RUF012 - Pygments declares it so

    tokens = {  # noqa: RUF012 - Pygments declares it so
        "root": [
            *_SPACE,
            _LINE_COMMENT,
            (r'"[a-z_]\w*+(?:\.[\w$]++)++"(?= ?\()', Name.Function),
            _STRING,
            (r"%[\w.$-]+(?:[:#]\d+)?", Name.Variable),
            (r"#[\w.$-]+", Name.Decorator),
            (r"![\w.$-]+", Keyword.Type),
            (r'@(?:[\w.$-]+|"(?:[^"\\\n]|\\.)*+"?)', Name.Label),
            (r"\^[\w.$-]+", Name.Label),
            (r"loc(?=\()", Comment),
            (rf"{_SCALAR}(?:, {_SCALAR})*+", Keyword.Type),
            (_SHAPED, Keyword.Type),
            (r"[A-Za-z_]\w*+(?:[.$][\w$-]++)++(?= ?=(?!=))", Name.Attribute),
            (r"[a-z_]\w*+(?:\.[\w$-]++)++", Name.Function),
            (_KEYWORD, Keyword),
            (r"[A-Za-z_][\w$]*+(?:\.[\w$-]++)*+", Name),
            (r"0x[0-9A-F]+(?!\w)", Number),
            (r"(?:(?:\d+|\?)x)+(?=[!<\w?])", Keyword.Type),
            (r"0x[0-9a-fA-F]+|-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?", Number),
            *_REST,
        ]
    }


class PtxLexer(RegexLexer):
    """PTX assembly."""

    name = "PTX"
    aliases = ["ptx"]  # noqa: RUF012 - Pygments declares it so
    filenames = ["*.ptx"]  # noqa: RUF012 - Pygments declares it so

    tokens = {  # noqa: RUF012 - Pygments declares it so
        "root": [
            *_SPACE,
            _LINE_COMMENT,
            _BLOCK_COMMENT,
            _STRING,
            (r"@!?%?\w+", Name.Decorator),
            (r"%[\w.$]+", Name.Variable),
            (r"[A-Za-z_$][\w$]*+:(?!:)", Name.Label),
            (r"\$[\w$]*", Name.Label),
            (r"[a-z][a-z0-9_]*+(?:(?:\.|::)\w++)*+(?=[\s;]|\Z)", Name.Function),
            (r"[A-Za-z_][\w$]*+(?:(?:\.|::)\w++)*+", Name),
            (r"\.(?:pred|[bsuf](?:8|16|32|64|128)|f16x2|bf16(?:x2)?|tf32)(?![\w.])", Keyword.Type),
            (r"\.[a-z_]\w*(?:::\w+)?", Keyword),
            (r"-?(?:0[xXfFdD][0-9a-fA-F]+U?|\d[\w.]*)", Number),
            *_REST,
        ]
    }


class SassLexer(RegexLexer):
    """NVIDIA's machine code as nvdisasm prints it, with or without raw encodings."""

    name = "SASS"
    aliases = ["sass"]  # noqa: RUF012 - Pygments declares it so
    filenames = ["*.sass"]  # noqa: RUF012 - Pygments declares it so

    tokens = {  # noqa: RUF012 - Pygments declares it so
        "root": [
            *_SPACE,
            _LINE_COMMENT,
            _BLOCK_COMMENT,
            _STRING,
            (r"@!?U?P(?:\d|T)\b", Name.Decorator),
            (r"U?R(?:\d+|Z)(?!\w)(?:\.\w+)*", Name.Variable),
            (r"!?U?P(?:\d|T|R)(?!\w)", Name.Decorator),
            (r"SR_?\w*(?:\.[XYZ])?(?!\w)|S?B\d+(?!\w)", Keyword.Type),
            (r"(?:cx?|desc)(?=\[)", Keyword.Type),
            (r"[A-Za-z_.$][\w$.]*+:", Name.Label),
            (r"[A-Z][A-Z0-9_]*+(?:\.\w++)*+(?=[\s;]|\Z)", Name.Function),
            (r"[A-Za-z_$][\w$.]*", Name),
            (r"`\([^)\n]*\)?", Name.Label),
            (r"\.[\w$.]+", Keyword),
            (r"-?(?:0x[0-9a-fA-F]+|\d[\w.]*)", Number),
            *_REST,
        ]
    }


class AmdgcnLexer(RegexLexer):
    """AMD's assembly as LLVM writes it; a line's first word that is not a label or a directive is an opcode."""

    name = "AMDGCN"
    aliases = ["amdgcn"]  # noqa: RUF012 - Pygments declares it so
    filenames = ["*.amdgcn"]  # noqa: RUF012 - Pygments declares it so

    tokens = {  # noqa: RUF012 - Pygments declares it so
        "root": [
            *_SPACE,
            (r";[^\n]*", Comment.Single),
            _STRING,
            (r"(?<![^\n])[\w.$@]++:", Name.Label),
            (r"\.L[\w.$]*+", Name.Label),
            (r"\.[A-Za-z_][\w.]*+", Keyword),
            (r"(?<![^\t\n])[a-z]\w*+(?=[\s]|\Z)", Name.Function),
            (r"[vsa](?:\d+|(?=\[))(?!\w)", Name.Variable),
            (r"(?:(?:vcc|exec|flat_scratch|xnack_mask)(?:_lo|_hi)?|ttmp\d+|m0|scc|null)(?!\w)", Name.Variable),
            (r"[a-z]\w*+(?=:)", Keyword),
            (r"[A-Za-z_$][\w$.]*", Name),
            (r"-?(?:0x[0-9a-fA-F]+|\d[\w.]*)", Number),
            *_REST,
        ]
    }


class LlvmIrLexer(RegexLexer):
    """LLVM IR; Pygments' own lexer takes quadratic time on some lines and knows no recent words."""

    name = "LLVM IR"
    aliases = ["llvm-ir"]  # noqa: RUF012 - Pygments declares it so
    filenames = ["*.ll", "*.llir"]  # noqa: RUF012 - Pygments declares it so

    tokens = {  # noqa: RUF012 - Pygments declares it so
        "root": [
            *_SPACE,
            (r";[^\n]*", Comment.Single),
            (r'c?"[^"\n]*+"?', String),
            (r'%(?:[\w.$-]+|"[^"\n]*+"?)', Name.Variable),
            (r'@(?:[\w.$-]+|"[^"\n]*+"?)', Name.Label),
            (r"[!#][\w.]+", Name.Decorator),
            (r"(?<![^\n])[\w.$-]++:", Name.Label),
            (rf"{_LLVM_TYPE}(?:, {_LLVM_TYPE})*+", Keyword.Type),
            (_LLVM_INSTRUCTION, Name.Function),
            (r"f?0x[HKLMR]?[0-9a-fA-F]+", Number),
            (r"-?\d+(?:\.\d*)?(?:e[+-]?\d+)?", Number),
            (r"[A-Za-z_][\w.$-]*", Keyword),
            *_REST,
        ]
    }


_LEXERS: dict[Syntax, type[Lexer]] = {
    "mlir": MlirLexer,
    "llvm": LlvmIrLexer,
    "ptx": PtxLexer,
    "sass": SassLexer,
    "amdgcn": AmdgcnLexer,
    "python": PythonLexer,
    "text": TextLexer,
}


@functools.cache
def lexer_for(syntax: Syntax) -> Lexer:
    """Return the lexer of a syntax; "text" has no colours."""
    return _LEXERS[syntax]()


def highlight_html(text: str | Sequence[str], syntax: Syntax) -> list[str]:
    """Return one piece of HTML a line: escaped text in spans with the classes of ``CLASSES``, nothing else.

    ``text`` is split at line feeds, or is a window of lines already; lines past ``MAX_LINE`` and what follows the first
    ``MAX_TEXT`` characters stay plain.
    """
    lines = text.split("\n") if isinstance(text, str) else text
    left = MAX_TEXT
    coloured: list[int] = []
    for number, line in enumerate(lines):
        if len(line) <= MAX_LINE and len(line) < left:
            coloured.append(number)
            left -= len(line) + 1
    out = [escape(line, quote=False) for line in lines]
    joined = "\n".join(lines[number] for number in coloured)
    for number, html in zip(coloured, _html_lines(joined, lexer_for(syntax)), strict=True):
        out[number] = html
    return out


def _html_lines(text: str, lexer: Lexer) -> Iterator[str]:
    """Colour a text; neighbours of one class share a span."""
    line: list[str] = []
    pending, css = "", ""
    for _, kind, value in lexer.get_tokens_unprocessed(text):
        for index, piece in enumerate(value.split("\n")):
            if index:
                line.append(_span(pending, css))
                yield "".join(line)
                line, pending, css = [], "", ""
            name = css_class(kind) if piece.strip() else css
            if name != css:
                line.append(_span(pending, css))
                pending, css = "", name
            pending += piece
    line.append(_span(pending, css))
    yield "".join(line)


def _span(text: str, css: str) -> str:
    inner = escape(text, quote=False)
    return f'<span class="{css}">{inner}</span>' if css and text else inner


@functools.cache
def css_class(kind: _TokenType) -> str:
    """Return the class of a token's nearest ancestor that has one, or the empty string."""
    node: _TokenType | None = kind
    while node is not None:
        if node in CLASSES:
            return CLASSES[node]
        node = node.parent
    return ""

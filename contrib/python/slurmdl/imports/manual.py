# SPDX-License-Identifier: Apache-2.0
"""python3 -m slurmdl.imports.manual PAGE: write the tables of all formats into dl-import(1), between two marks."""

import sys
from typing import Iterator, List

from . import FORMATS
from .jobs import POD_ROWS
from .table import CHANGED, NONE, Row

BEGIN, END = '.\\" tables: by python3 -m slurmdl.imports.manual', '.\\" end of the tables'


def _escape(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")


# a row: the fields, and where they go
MACRO = """.de FD
.IP "\\\\$1"
\\\\$2
.."""


def _lines(rows: List[Row]) -> Iterator[str]:
    for row in rows:
        paths = row.path.split()
        where = "but: " if row.state == CHANGED else ""
        to = "no meaning" if row.state == NONE else row.to
        text = f"{to}; {where}{row.remark}" if row.remark else to
        yield f'.FD "{_escape(", ".join(paths))}" "{_escape(text)}"'


def text() -> str:
    """The tables, with a section for each format."""
    lines = [BEGIN, MACRO]
    for format in FORMATS:
        for table in format.tables:
            lines += [f".SS {_escape(table.title)}", *_lines(table.rows)]
        if format.name == "job":
            lines += [".SS Pods, of template", *_lines(POD_ROWS)]
    return "\n".join([*lines, END]) + "\n"


def main(page: str) -> None:
    with open(page, encoding="utf-8") as f:
        whole = f.read()
    before, _, rest = whole.partition(BEGIN + "\n")
    after = rest.partition(END + "\n")[2]
    with open(page, "w", encoding="utf-8") as f:
        f.write(before + text() + after)


if __name__ == "__main__":
    main(sys.argv[1])

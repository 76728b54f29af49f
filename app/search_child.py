"""The child that runs a regular expression over texts; started as a script, so that it imports next to nothing.

Arguments: the expression as JSON, the most hits, the longest line, and the sizes in bytes of the texts, which follow
one another in the file that is standard input. Each hit is a line of JSON: index of the text, line from 1, the line's
beginning. For an expression that cannot be compiled the exit code is ``MALFORMED``, and the one line is the reason.
"""

import json
import mmap
import re
import resource
import sys

MEMORY = 4 << 30
MALFORMED = 3


def main(query: str, most: int, longest: int, sizes: list[int]) -> None:
    """Print one hit more than asked for at most, so that the parent knows there are more."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        pattern = re.compile(query.encode())
    except (re.error, RecursionError, OverflowError, MemoryError) as error:
        print(json.dumps(str(error)))
        sys.exit(MALFORMED)
    if not sum(sizes):
        return
    data = mmap.mmap(0, 0, access=mmap.ACCESS_READ)
    found = offset = 0
    for index, size in enumerate(sizes):
        for number, line in enumerate(data[offset : offset + size].split(b"\n"), 1):
            if pattern.search(line):
                print(json.dumps([index, number, line[:longest].decode("utf-8", errors="replace")]), flush=True)
                found += 1
                if found > most:
                    return
        offset += size


main(
    json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), [int(size) for size in sys.argv[4].split(",") if size]
)

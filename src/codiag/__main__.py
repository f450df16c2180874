"""Run the command line: ``python -m codiag``."""

from codiag.cli import main

if __name__ == "__main__":
    main()

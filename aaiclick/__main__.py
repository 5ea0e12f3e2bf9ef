"""`python -m aaiclick` is the command `aaiclick`."""

from aaiclick.cli import main

if __name__ == "__main__":
    main()

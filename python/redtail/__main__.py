"""`python -m redtail` is the command `redtail`."""

from redtail.cli import main

if __name__ == "__main__":
    main()

"""What is shown: tables on screen, and figures."""

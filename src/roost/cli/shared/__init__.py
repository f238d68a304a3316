"""What every command has: its declaration, options, output and terminal."""

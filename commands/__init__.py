"""The parts of the command line. Nothing in the library imports them; they import nothing that is not asked for."""

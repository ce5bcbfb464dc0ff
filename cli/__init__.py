"""The command line: ``youyou`` and ``python -m youyou``. Nothing in the library imports it, and a command's parts are
imported only when that command runs."""

from __future__ import annotations

from .entry import main

__all__ = ["main"]

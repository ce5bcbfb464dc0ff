"""A small language model inside this process (semantics 14). Extra ``local``."""

from .provider import LocalProvider

__all__ = ["LocalProvider"]

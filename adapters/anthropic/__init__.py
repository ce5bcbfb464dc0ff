"""Anthropic and every server that speaks its messages API (semantics 14). Extra ``anthropic``."""

from .provider import AnthropicProvider

__all__ = ["AnthropicProvider"]

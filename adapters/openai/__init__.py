"""OpenAI and every server that speaks one of its two APIs (semantics 14). Extra ``openai``."""

from .provider import OpenAIProvider

__all__ = ["OpenAIProvider"]

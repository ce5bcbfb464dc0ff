"""The words of compaction (semantics 9). Texts only."""

from __future__ import annotations

SUMMARY_TAG = "conversation_summary"

SUMMARY_PREFIX = (
    "The earlier part of this conversation was replaced by this summary. Take it as what was said and done so far, "
    "including what was already done about the newest request. Do not repeat finished work."
)

SUMMARY_PROMPT = """\
Summarise the conversation below, so that it can go on without its text. The model that continues it sees your summary \
and nothing else of this part.

Write down, briefly and in the language of the conversation:
- what the user wants, in the user's own terms, with every constraint and preference;
- what was decided and done, with exact names, paths, numbers, identifiers and commands;
- what the tools found that still matters, and what failed and why;
- what is unfinished, and the next step.

Do not answer the conversation, do not call tools, do not add anything that was not said. Answer with the \
summary alone."""

CONVERSATION_TAG = "conversation"

OMITTED_ROUNDS = "[{count} earlier messages are left out here]"

EARLIER_REMOVED = "[Earlier messages of this conversation were removed to make room]"

CLIPPED = "\n[… {count} characters left out to make room …]\n"

IMAGE_REMOVED = "[An image was removed to make room]"

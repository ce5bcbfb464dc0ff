"""What the agent can be: domains say what the work is about, skills say what is to be done.

A session picks at most one of each. Domains subscribe to tools by their tags; skills that need a fixed flow are
pipelines, whose steps name the few tools that each of them needs.
"""

from __future__ import annotations

from youyou import (
    AgentProfile,
    Budget,
    Pipeline,
    ProfileKind,
    QuickAction,
    ReAct,
    SingleShot,
    Step,
)

NOVEL = AgentProfile(
    "novel",
    ProfileKind.DOMAIN,
    "Novel",
    "Stories: their chapters, scenes and people.",
    icon="feather",
    instructions="The texts are chapters of a novel. Speak of scenes, people and motives; never give the end away.",
    require_tags=("text",),
    quick_actions=(QuickAction("What happens?", "What happens in the chapter lighthouse?", "search"),),
)

STUDY_NOTES = AgentProfile(
    "study-notes",
    ProfileKind.DOMAIN,
    "Study notes",
    "Texts to learn from: concepts, cards, questions.",
    icon="graduation-cap",
    instructions="The texts are to be learned. Explain one concept at a time, in plain words.",
    tools=("outline", "split_chapter"),
    require_tags=("notes",),
    quick_actions=(QuickAction("Explain", "Explain the chapter tides to me.", "lightbulb"),),
)

EXAM_NOTES = AgentProfile(
    "exam-notes",
    ProfileKind.DOMAIN,
    "Exam notes",
    "Study notes shortly before an exam.",
    instructions="The exam is near: be brief, and leave out what nobody asks.",
    budget=Budget(max_rounds=4),
    extends="study-notes",
)

OUTLINE = AgentProfile(
    "outline",
    ProfileKind.SKILL,
    "Outline",
    "The structure of a chapter, in one or two rounds.",
    icon="list-tree",
    instructions="Give the structure of the chapter as a list, in its own words.",
    tools=("outline",),
    mode=ReAct(Budget(max_rounds=3)),
    quick_actions=(QuickAction("Outline tides", "Outline the chapter tides."),),
)

SPLIT_CHAPTER = AgentProfile(
    "split-chapter",
    ProfileKind.SKILL,
    "Split chapter",
    "First the outline, then each section by itself.",
    icon="scissors",
    mode=Pipeline(
        (
            Step("outline", "Find the sections of: {input}", tools=("outline",)),
            Step("split", "Split it into these sections, each with one sentence: {steps.outline}",
                 tools=("split_chapter",), retries=1),
        )
    ),
    quick_actions=(QuickAction("Split lighthouse", "Split the chapter lighthouse."),),
)  # fmt: skip

CONCEPT_CARDS = AgentProfile(
    "concept-cards",
    ProfileKind.SKILL,
    "Concept cards",
    "Read a chapter, find its points, make cards of them.",
    icon="layers",
    mode=Pipeline(
        (
            Step("read", "Read the sections of: {input}", tools=("split_chapter",), output="text"),
            Step("points", "Name the concepts of this text, one a line:\n{steps.text}", mode=SingleShot()),
            Step("cards", "Make a card of each of these concepts:\n{steps.points}\nThe text was:\n{steps.text}",
                 tools=("concept_cards",), budget=Budget(max_tool_calls=5), retries=1),
        )
    ),
    quick_actions=(QuickAction("Cards of tides", "Make cards of the chapter tides.", "layers"),),
)  # fmt: skip

REVIEW_QUESTIONS = AgentProfile(
    "review-questions",
    ProfileKind.SKILL,
    "Review questions",
    "Tidy the notes, then ask about them.",
    icon="help-circle",
    mode=Pipeline(
        (
            Step("tidy", "Tidy the notes on: {input}", tools=("outline", "split_chapter"), output="notes"),
            Step("ask", "Ask three questions about these notes, with answers:\n{steps.notes}",
                 tools=("review_questions",), budget=Budget(max_tool_calls=3), retries=1),
        )
    ),
    quick_actions=(QuickAction("Ask me", "Ask me about the chapter tides.", "help-circle"),),
)  # fmt: skip

BLURB = AgentProfile(
    "blurb",
    ProfileKind.SKILL,
    "Blurb",
    "Three sentences for the back cover, straight away.",
    icon="quote",
    instructions="Write three sentences for the back cover of what the user names.",
    mode=SingleShot(),
)

PROFILES = (NOVEL, STUDY_NOTES, EXAM_NOTES, OUTLINE, SPLIT_CHAPTER, CONCEPT_CARDS, REVIEW_QUESTIONS, BLURB)

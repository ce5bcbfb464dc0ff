"""A small writing application on youyou: tools, profiles, pipelines and a page that discovers them.

Run it with ``python -m writing_desk`` from the folder above; see ``docs/profiles.md``.
"""

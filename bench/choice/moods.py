"""Sentences that have the words of a wish and are none: denied, past, told, quoted and asked about. They are made from wishes by a few
forms, so nothing is tuned on the words of any one."""

from __future__ import annotations

from typing import Final, NamedTuple

WISHES: Final[tuple[tuple[str, str, str, str], ...]] = (
    ("set a timer for five minutes", "set a timer", "setting a timer", "set_timer"),
    ("delete the macro good night", "deleted the macro", "deleting the macro", "delete_macro"),
    ("run the macro good morning", "ran the macro", "running the macro", "run_macro"),
    ("cancel the timer", "cancelled the timer", "cancelling the timer", "cancel_task"),
    ("switch to the dark theme", "switched to the dark theme", "switching to the dark theme", "switch_theme"),
    ("remember that the key is under the mat", "remembered the key", "remembering the key", "remember"),
    ("generate a password", "generated a password", "generating a password", "generate_password"),
    ("hash this text with sha 256", "hashed the text", "hashing the text", "hash_text"),
    ("open the settings page", "opened the settings page", "opening the settings page", "navigate_to_page"),
    ("create a project called apollo", "created a project", "creating a project", "create_project"),
)
"""Wishes, as they are said, as what was done, as what is being done, and the function that they want."""

_DENIED: Final = (
    "don't {0}",
    "please do not {0}",
    "no, don't {0}",
    "you must not {0}",
    "never {0} again",
    "I don't want you to {0}",
    "there is no need to {0}",
)
_PAST: Final = ("did you {0}", "have you {1} already", "I {1} yesterday", "we {1} an hour ago", "why did you {0}")
_TOLD: Final = (
    "he said {0}",
    "my sister told me to {0}",
    "the manual says {0}",
    "she wanted me to {0}",
    "they always say {0}",
    "he said “{0}”",
)
_SUPPOSED: Final = ("what happens if I {0}", "should I {0}", "if I said {0} would you do it", "what would happen when you {0}")


class Sentence(NamedTuple):
    """A sentence, what makes it no wish, and the function whose call it must not force."""

    said: str
    kind: str
    function: str


def sentences() -> list[Sentence]:
    """Return all sentences, 22 for each of ten wishes."""
    kinds = {"denied": _DENIED, "past": _PAST, "told": _TOLD, "supposed": _SUPPOSED}
    return [
        Sentence(form.format(wish, done, doing), kind, function)
        for wish, done, doing, function in WISHES
        for kind, forms in kinds.items()
        for form in forms
    ]

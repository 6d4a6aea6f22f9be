"""The mood of a request: whether it is a wish that the user has now, one that they deny, or only told, quoted or asked about.

The words of a function say nothing about that: "don't set a timer", "he said delete the macro" and "did you delete the macro" have all of
them. The rules are about the beginnings of English clauses, as what people say to want a function is English, and about words for no in
other languages, whose sentences may share a word with a function ("kein Timer bitte"). They only ever hold a call back.
"""

from __future__ import annotations

import re
from typing import Final, Literal

Mood = Literal["wish", "denied", "told", "asked"]
"""A wish may force a call; what is asked about what was done may force one that only reads; what is told, quoted or supposed leaves the
choice to the model; what is denied wants words."""

_CLAUSES: Final = re.compile(r"[.,;:!?]+\s+|\s+(?:but|instead|rather)\s+", re.IGNORECASE)
_FILLER: Final = re.compile(
    r"(?:please|no|oh|well|and|so|now|hey|okay|ok|wait|hang on|hold on|actually|just|listen|look|honestly|computer|assistant"
    r"|i (?:said|repeat)|i told you(?: to)?|one moment|sorry|thanks|thank you)\b[\s,]*",
    re.IGNORECASE,
)

_DENIED: Final = re.compile(
    r"(?:(?:you )?(?:do not|don't(?! you\b)|dont|must not|mustn't|should not|shouldn't|shall not|need not|needn't|(?:had )?better not)"
    r"|never(?! mind)|under no circumstances|by no means|there is no need (?:to|for)|there's no need (?:to|for)|need (?:to|for)"
    r"|i (?:do not|don't|dont|never|would not|wouldn't) (?:want|need|like|wish|asked?)"
    r"|i(?:'d| would) (?:rather|prefer) (?:you (?:did not|didn't|not)|not)"
    r"|i (?:have not|haven't|did not|didn't) (?:want|ask|say|tell)\w*|nobody (?:asked|wants|said)|not (?:now|yet))\b"
    r"(?!\s+(?:for ?get|fail|hesitate|worry|let me forget)\b)"
    r"(?!.*\b(?:any ?more|any longer|without asking|on your own)\b)",
    re.IGNORECASE,
)

_WHO: Final = r"(?:he|she|they|somebody|someone|everybody|everyone|my \w+|your \w+|our \w+|the \w+|a \w+)"
_DONE: Final = r"(?!need|feed|speed|liked|meant)(?:\w{2,}ed|set|made|put|wrote|ran|sent|took|turned|given|done|gone|taken|told|written)"
_TOLD: Final = re.compile(
    rf"(?:{_WHO}|[a-z]+) (?:just |once |always |often |already )?(?:said|says|told|tells|asked|asks|wrote|writes|shouted|whispered"
    rf"|suggested|suggests|reads|claimed|claims|used to|kept saying|keeps saying)\b.*|{_WHO} wants? (?:me|you|us) to .*"
    rf"|{_WHO} wanted .*|{_WHO} (?:always |often |never )?(?:say|tell|ask|write|claim|suggest)\b.*"
    r"|(?:(?:why|when|how|where) )?(?:did|have|had|were)(?:n't)? you (?!got\b|finished\b|any\b|ever\b)\w.*"
    r"|(?:yesterday|last (?:week|night|month|year|time)|earlier today|a while ago|the other day|once upon)\b.*"
    rf"|(?:i|we|you|he|she|they) (?:just |already |once |have |had )*{_DONE} .*"
    r"|(?:i wonder|i am wondering|i'm wondering) (?:if|whether|what|how|why) (?!you\b)\w.*"
    rf"|(?:what|how) would (?!you\b|i\b|be\b)(?:{_WHO}|\w+) (?:do|say|think|answer|suggest|recommend|want|like)\b.*"
    r"|(?:suppose|imagine|what if|should (?:i|we)|would it|is it (?:possible|true|okay|ok)|why (?:would|should|don't) )\b.*"
    rf"|if (?:i|you|we|{_WHO}) (?:say|says|said|ask|asks|asked|tell|tells|told|were|was|wanted|would|could|did)\b.*"
    r"|.*\bwhat (?:happens|would happen)\b.*|.*\bmeaning of\b.*"
    r"|what (?:does|do|did) (?:the (?:words?|terms?|phrase|name|verb|expression|sentence)\b"
    r"|(?!(?:the|this|that|these|those|it|my)\b)).*\bmean\b.*"
    r"|how (?:do|would|can|does) (?:you|i|we|one|somebody|people) (?:say|spell|pronounce)\b.*|what is the word for .*",
    re.IGNORECASE,
)
_ASKED: Final = re.compile(
    r"(?:(?:why|when|how|where|what|who|which \w+) )?(?:(?:did|had|was|were|has)(?:n't)? it\b"
    r"|(?:did|had|was|were|has|have)(?:n't)? (?:you|i|we|he|she|they|somebody|someone|anybody|anyone)\b).*"
    r"|(?:(?:why|when|how|where|what|who|which \w+) )?(?:did|had|was|were|has)(?:n't)? (?:my|the|that|this) \w+ .*",
    re.IGNORECASE,
)


_FOREIGN_NO: Final = re.compile(
    r"\b(?:kein(?:e[mnrs]?)?|nicht|niemals|nie|pas|jamais|aucune?|nunca|jam[áa]s|tampoco|não|nem|niet|geen|nooit|inte|ingen|inget|aldrig"
    r"|ikke|non(?= \w+(?:[aei]re|ta|ti|lo|la)\b)|не|нет|никогда|нельзя|değil|sakın|asla|hiçbir)\b"
    r"|\bno\b(?=.*\b(?:un[ao]?s?|el|los|las|del|por favor|mi|tu|la macro|il|lo|gli|uno|per favore)\b)"
    r"|(?:しないで|ないで|やめて|不要|别|別(?![のに々])|不用|하지 ?마|마세요|لا |ممنوع|मत|नहीं)",
    re.IGNORECASE,
)
_FOREIGN_REMINDER: Final = re.compile(
    r"\b(?:vergiss (?:bitte )?nicht|vergessen sie nicht|n'oubliez? pas|no (?:te )?olvides|non dimenticare|não (?:se )?esqueça|vergeet niet"
    r"|glöm inte|nie zapomnij|не забудь)\b",
    re.IGNORECASE,
)
"""Words by which "do not forget" is a wish."""


_QUESTION: Final = re.compile(
    r"(?:what|who|whom|whose|why|when|where|which|how)\b(?! about\b).*|(?:is|are|was|were|does|did|has|had|am)(?:n't)? \w.*"
    r"|(?:do|have) (?:i|you|we|he|she|it|they)\b.*|(?:can|could|will|would|should|shall|may|might|must) (?!you\b|not\b)\w.*",
    re.IGNORECASE,
)


def is_question(said: str) -> bool:
    """Tell whether a request only asks something: each of its clauses does. "Could you" and its like ask for something to be done."""
    clauses = [clause for part in _CLAUSES.split(" ".join(said.split())) if (clause := _without_filler(part))]
    return bool(clauses) and all(_QUESTION.fullmatch(clause) for clause in clauses)


def mood(said: str) -> Mood:
    """Return the mood of a request: that of its first clause that says more than a filler; a denial with a wish behind it is only told."""
    if _FOREIGN_NO.search(said) and not _FOREIGN_REMINDER.search(said):
        return "denied"
    clauses = [clause for part in _CLAUSES.split(" ".join(said.split())) if (clause := _without_filler(part))]
    moods = [_of(clause) for clause in clauses]
    if not moods or moods[0] == "wish":
        return "wish"
    return moods[0] if all(one == moods[0] for one in moods) else "told"


def _of(clause: str) -> Mood:
    if _DENIED.match(clause):
        return "denied"
    return "told" if _TOLD.fullmatch(clause) else "asked" if _ASKED.fullmatch(clause) else "wish"


def _without_filler(clause: str) -> str:
    clause = clause.replace("’", "'").strip(" \"“”'‘")
    while (found := _FILLER.match(clause)) is not None and found.end():
        clause = clause[found.end() :]
    return clause

"""Plain answers to a question that wants yes or no: their words in each language, and how an answer is read. Pure.

A yes is a word for yes with nothing beside it but harmless words and words of the question ("Yes, please delete it."). A word for no
anywhere is a no. Whatever else was said, a condition, a wish, a doubt, makes it neither: an answer never errs to yes.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

Answer = Literal["approved", "denied", ""]


class Answers(NamedTuple):
    """Whole answers in a language, and what the agent says after each."""

    yes: frozenset[str]
    no: frozenset[str]
    granted: str
    refused: str
    meant: str
    """Question whether a macro of this name was meant."""


def _said(yes: str, no: str, granted: str, refused: str, meant: str) -> Answers:
    return Answers(frozenset(yes.split(", ")), frozenset(no.split(", ")), granted, refused, meant)


_BY_LANGUAGE: Final = {
    "en": _said(
        "yes, yes please, yeah, yep, yup, sure, okay, ok, go ahead, do it, please do, yes do it, yes go ahead, of course, approved, "
        "confirmed, that is right, that's right, correct, absolutely, certainly",
        "no, no thanks, no thank you, nope, nah, don't, do not, don't do it, do not do it, stop, cancel, cancel it, never mind, "
        "please don't, no don't, leave it, not now, rather not",
        "All right.",
        "All right, I won't.",
        "Did you mean {}? Please say yes or no.",
    ),
    "de": _said(
        "ja, ja bitte, jawohl, klar, okay, ok, gerne, mach das, mach es, ja mach das, tu es, sicher, natürlich, genau, "
        "bestätigt, einverstanden",
        "nein, nein danke, nee, lass es, lass das, stopp, abbrechen, nicht, lieber nicht, auf keinen fall, mach das nicht",
        "In Ordnung.",
        "In Ordnung, ich lasse es.",
        "Meinten Sie {}? Bitte sagen Sie ja oder nein.",
    ),
    "fr": _said(
        "oui, oui s'il te plaît, oui s'il vous plaît, ouais, d'accord, ok, vas-y, allez-y, bien sûr, fais-le, faites-le, confirmé",
        "non, non merci, arrête, annule, annulez, surtout pas, pas maintenant, ne le fais pas, laisse tomber",
        "D'accord.",
        "D'accord, je ne le fais pas.",
        "Vous vouliez dire {} ? Dites oui ou non.",
    ),
    "es": _said(
        "sí, si, sí por favor, claro, vale, de acuerdo, adelante, hazlo, por supuesto, confirmado, ok",
        "no, no gracias, para, cancela, cancélalo, déjalo, mejor no, ahora no, no lo hagas",
        "De acuerdo.",
        "De acuerdo, no lo hago.",
        "¿Quería decir {}? Diga sí o no.",
    ),
    "it": _said(
        "sì, si, sì grazie, certo, va bene, ok, d'accordo, fallo, procedi, confermato",
        "no, no grazie, fermati, annulla, lascia stare, meglio di no, non farlo, non ora",
        "Va bene.",
        "Va bene, non lo faccio.",
        "Intendeva {}? Dica sì o no.",
    ),
    "pt": _said(
        "sim, sim por favor, claro, está bem, tudo bem, ok, pode fazer, faz isso, faça isso, confirmado",
        "não, não obrigado, não obrigada, pare, cancela, cancele, deixa, melhor não, agora não, não faça isso",
        "Está bem.",
        "Está bem, não faço.",
        "Queria dizer {}? Diga sim ou não.",
    ),
}


def _only(granted: str, refused: str, meant: str) -> Answers:
    return Answers(frozenset(), frozenset(), granted, refused, meant)


_SAID: Final = {
    "nl": _only("Goed.", "Goed, ik doe het niet.", "Bedoelde u {}? Zeg ja of nee."),
    "pl": _only("Dobrze.", "Dobrze, nie zrobię tego.", "Czy chodziło o {}? Proszę powiedzieć tak lub nie."),
    "sv": _only("Okej.", "Okej, jag låter bli.", "Menade du {}? Säg ja eller nej."),
    "ru": _only("Хорошо.", "Хорошо, не буду.", "Вы имели в виду {}? Скажите да или нет."),
    "tr": _only("Peki.", "Peki, yapmıyorum.", "{} mi demek istediniz? Lütfen evet ya da hayır deyin."),
    "hi": _only("ठीक है।", "ठीक है, मैं नहीं करूँगा।", "क्या आपका मतलब {} था? कृपया हाँ या नहीं कहिए।"),
    "ja": _only("わかりました。", "わかりました。やめておきます。", "{}のことですか？はいかいいえでお答えください。"),
    "zh": _only("好的。", "好的，我不做。", "您是指{}吗？请说是或不是。"),
}


class More(NamedTuple):
    """Words of a language beside its whole answers: phrases that are a yes or a no wherever they stand, words that are harmless beside a
    yes, and phrases with a word for no that are no answer."""

    yes: str
    no: str
    harmless: str
    neither: str


_MORE: Final = {
    "en": More(
        (
            "yes, yeah, yep, yup, yea, aye, sure, okay, ok, alright, all right, go ahead, go on, go for it, "
            "do it, do that, please do, of course, approved, confirmed, correct, absolutely, certainly, "
            "definitely, exactly, that is right, that's right, that's fine, that is fine, fine with me, sure "
            "thing, sounds good, no problem, you can, you may, i agree, i confirm, i approve"
        ),
        (
            "no, nope, nah, not, don't, dont, do not, never, stop, cancel, abort, refuse, rather not, leave "
            "it, forget it, hold on, no way, won't"
        ),
        (
            "please, thanks, thank you, now, then, just, oh, well, uh, um, hm, so, and, that, it, this, good, "
            "great, for me, with it, ahead, the"
        ),
        ("don't know, do not know, not sure, don't understand, do not understand, why not, no worries, don't care, what if not"),
    ),
    "de": More(
        (
            "ja, jawohl, jo, jep, klar, okay, ok, gerne, gern, mach das, mach es, mach mal, tu es, sicher, "
            "natürlich, genau, bestätigt, einverstanden, auf jeden fall, los, nur zu, stimmt, richtig, in "
            "ordnung, passt, kein problem"
        ),
        ("nein, nee, nö, nicht, stopp, stop, halt, abbrechen, abbruch, lass es, lass das, kein, keine, keinen, niemals, auf keinen fall"),
        ("bitte, danke, jetzt, dann, doch, mal, na, gut, sehr, das, es, so, und, aber gerne, ruhig"),
        "weiß nicht, weiss nicht, nicht sicher, verstehe nicht, warum nicht, keine ahnung",
    ),
    "fr": More(
        (
            "oui, ouais, d'accord, ok, okay, vas-y, allez-y, bien sûr, fais-le, faites-le, confirmé, "
            "certainement, exactement, volontiers, avec plaisir, pas de problème"
        ),
        "non, ne, pas, jamais, arrête, arrêtez, annule, annulez, stop, laisse tomber, surtout pas",
        "s'il te plaît, s'il vous plaît, merci, maintenant, alors, bon, très bien, le, la, les, ça, et",
        "ne sais pas, sais pas, pas sûr, pas sûre, ne comprends pas, pourquoi pas",
    ),
    "es": More(
        (
            "sí, si, claro, vale, de acuerdo, adelante, hazlo, por supuesto, confirmado, ok, okay, exacto, "
            "correcto, desde luego, sin problema, no hay problema"
        ),
        "no, nunca, para, cancela, cancélalo, cancelar, déjalo, detente, alto, mejor no",
        "por favor, gracias, ahora, pues, bueno, bien, muy, eso, lo, la, el, y, entonces",
        "no sé, no lo sé, no entiendo, no estoy seguro, no estoy segura, por qué no",
    ),
    "it": More(
        (
            "sì, si, certo, va bene, ok, okay, d'accordo, fallo, procedi, confermato, esatto, certamente, "
            "volentieri, senza problemi, nessun problema"
        ),
        "no, non, mai, fermati, annulla, basta, lascia stare, meglio di no",
        "per favore, grazie, ora, adesso, allora, bene, lo, la, il, e, pure, prego",
        "non so, non lo so, non capisco, non sono sicuro, non sono sicura, perché no",
    ),
    "pt": More(
        (
            "sim, claro, está bem, tudo bem, ok, okay, pode fazer, faz isso, faça isso, confirmado, com "
            "certeza, exato, certo, pode, sem problema"
        ),
        "não, nunca, pare, para, cancela, cancele, deixa, melhor não",
        "por favor, obrigado, obrigada, agora, então, bem, isso, o, a, e",
        "não sei, não entendo, não tenho certeza, por que não, porque não",
    ),
    "nl": More(
        (
            "ja, jazeker, jawel, zeker, oké, oke, ok, okay, graag, doe maar, doe het, natuurlijk, prima, "
            "akkoord, ga je gang, klopt, geen probleem"
        ),
        "nee, niet, nooit, stop, annuleer, annuleren, geen, laat maar, liever niet, toch niet",
        ("alsjeblieft, alstublieft, dank je, dank u, bedankt, nu, dan, maar, het, dat, goed, hoor, en"),
        "weet niet, weet het niet, niet zeker, begrijp niet, waarom niet, geen idee",
    ),
    "pl": More(
        ("tak, jasne, pewnie, dobrze, okej, ok, zgoda, zrób to, oczywiście, potwierdzam, proszę bardzo, zgadza się, nie ma problemu"),
        "nie, nigdy, stop, anuluj, przestań, zostaw",
        "proszę, dziękuję, dzięki, teraz, to, no, więc, i",
        "nie wiem, nie rozumiem, nie jestem pewien, nie jestem pewna, czemu nie, dlaczego nie",
    ),
    "sv": More(
        "ja, japp, visst, okej, ok, gärna, gör det, självklart, absolut, kör, stämmer, inga problem",
        "nej, nä, inte, aldrig, stopp, stoppa, avbryt, låt bli, ingen, inget",
        "tack, snälla, nu, då, det, den, bra, och",
        "vet inte, inte säker, förstår inte, varför inte",
    ),
    "ru": More(
        (
            "да, ага, конечно, хорошо, ладно, окей, ок, давай, давайте, сделай, сделай это, подтверждаю, "
            "согласен, согласна, верно, без проблем"
        ),
        "нет, не, никогда, стоп, стой, отмена, отмени, отменить, нельзя, не надо",
        "пожалуйста, спасибо, сейчас, тогда, ну, это, его, и",
        "не знаю, не понимаю, не уверен, не уверена, почему нет, почему бы и нет",
    ),
    "tr": More(
        ("evet, tamam, olur, peki, elbette, tabii, tabii ki, yap, onaylıyorum, doğru, sorun değil, sorun yok"),
        "hayır, yok, olmaz, dur, iptal, iptal et, yapma, asla, değil",
        "lütfen, teşekkürler, teşekkür ederim, şimdi, o zaman, onu, bunu, ve",
        "bilmiyorum, emin değilim, anlamadım, neden olmasın",
    ),
    "hi": More(
        "हाँ, हां, जी हाँ, जी हां, जी, ठीक है, बिल्कुल, ज़रूर, जरूर, कर दो, कर दीजिए, करो, सही है",
        "नहीं, ना, मत, मत करो, रुको, रुकिए, रद्द करो, रद्द, कभी नहीं",
        "कृपया, धन्यवाद, अभी, तो, यह, वह, इसे, उसे, है, और",
        "पता नहीं, नहीं पता, समझा नहीं, समझ नहीं आया, क्यों नहीं, कोई बात नहीं",
    ),
    "ja": More(
        "はい, ええ, うん, いいよ, いいです, お願いします, はいお願いします, どうぞ, もちろん, オーケー, 了解, そうです, "
        "はいそうです, はいどうぞ",
        "いいえ, いや, だめ, ダメ, やめて, やめてください, 中止, キャンセル, しないで, いいえ結構です, 結構です, 止めて, 止めてください",
        "",
        "",
    ),
    "zh": More(
        "是, 是的, 好, 好的, 可以, 对, 行, 没问题, 当然, 确认, 同意, 好的请, 是的请, 请继续, 嗯, 好啊",
        "不, 不要, 不是, 不行, 不用, 不用了, 停, 停止, 取消, 别, 算了, 不可以, 不同意",
        "",
        "",
    ),
}
LANGUAGES: Final = tuple(_MORE)
"""ISO 639-1 codes of the languages in which a yes or a no is known. In others English is, and a click counts everywhere."""

_PHRASES: Final = {
    code: tuple(tuple(tuple(phrase.split()) for phrase in words.split(", ") if phrase) for words in more) for code, more in _MORE.items()
}


def of(language: str, *, whole: bool = False) -> Answers:
    """Return what is said after an answer in a language (a BCP 47 tag), and the whole answers that journals with rules before 3 know; the
    English ones for others. `whole` leaves out the languages that have no whole answers."""
    code = _code(language)
    return (_BY_LANGUAGE.get(code) or (None if whole else _SAID.get(code))) or _BY_LANGUAGE["en"]


def is_known(language: str) -> bool:
    """Tell whether a yes and a no are known in a language (a BCP 47 tag; empty for English)."""
    return _code(language) in _PHRASES


def read(text: str, language: str, question: str) -> Answer:
    """Read an answer in a language to a question that was put in these words."""
    yes, no, harmless, neither = _PHRASES.get(_code(language), _PHRASES["en"])
    said = _words(text)
    if any(_find(said, phrase) for phrase in neither):
        return ""
    asked = frozenset(_words(question)) - _PERSONS
    left, approves = _without(said, sorted(yes, key=len, reverse=True))
    denies = [phrase for phrase in no if _find(left, phrase)]
    if approves:  # "Yes, stop it." is a yes where it was asked whether to stop
        denies = [phrase for phrase in denies if len(phrase) > 1 or phrase[0] not in asked or phrase[0] in _ALWAYS]
    if denies:
        return "denied"
    beside, _ = _without(left, sorted(harmless, key=len, reverse=True))
    return "approved" if approves and asked.issuperset(beside) else ""


_ALWAYS: Final = frozenset(
    "no not don't never nein nicht kein ne pas non não nunca nee niet nie inte не нет нельзя hayır değil नहीं मत 不 不要".split()  # noqa: SIM905
)
"""Words for no that are one also where the question has them."""


_PERSONS: Final = frozenset(("i", "we", "you", "he", "she", "they", "shall", "should", "may", "can"))
"""Words of questions that make a sentence of somebody's own of an answer: "I do that" is no yes, and "I'm okay" often a no."""


def _code(language: str) -> str:
    return (language or "en")[:2].casefold()


def _words(text: str) -> list[str]:
    """Return the words in lower case: letters with their marks, and what joins two of them."""
    folded = unicodedata.normalize("NFC", text.casefold()).replace("’", "'").replace("_", " ").replace("i\u0307", "i")
    kept = "".join(letter if unicodedata.category(letter)[0] in "LMN" or letter in "'-" else " " for letter in folded)
    return [word for word in (part.strip("'-") for part in kept.split()) if word]


def _find(words: Sequence[str], phrase: Sequence[str]) -> bool:
    return any(tuple(words[at : at + len(phrase)]) == tuple(phrase) for at in range(len(words) - len(phrase) + 1))


def _without(words: Sequence[str], phrases: Sequence[Sequence[str]]) -> tuple[list[str], bool]:
    """Return the words that belong to none of the phrases, the longest of which count first, and whether any did."""
    left: list[str] = []
    found, at = False, 0
    while at < len(words):
        phrase = next((one for one in phrases if tuple(words[at : at + len(one)]) == tuple(one)), None)
        if phrase is None:
            left.append(words[at])
            at += 1
        else:
            found, at = True, at + len(phrase)
    return left, found

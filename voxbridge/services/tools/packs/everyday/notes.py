"""The notes pack: keep what a user asks to remember, and find it again by its words."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import Meta

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.core.inputs import Reversible
from voxbridge.services.tools.packs.everyday.stems import shared, stems
from voxbridge.services.tools.registry import function
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.tools import NoteRemembered
from voxbridge.shared.store.store import Note

NOTE_LIMIT: Final = 1_000
FOUND_LIMIT: Final = 5


async def _forget(given: Mapping[str, Any], ctx: Context) -> str:
    await ctx.notes.forget(ctx.account, given["note_id"], ts=ctx.now)
    return "I forgot the note."


@function(idempotent=True, undo=_forget)
async def remember(
    note: Annotated[str, Meta(min_length=1, max_length=NOTE_LIMIT, examples=["The spare key is under the mat."])], ctx: Context
) -> Reversible:
    """Keep a note about what the user tells you to remember.

    Args:
        note: What to keep, as a sentence.

    Examples:
        remember that my bike is in the cellar
        keep in mind that Anna is allergic to nuts
        make a note that the meeting moved to Friday
        note down that the plumber comes at nine
        don't forget that I parked on level two
        save this for later the wifi is called meadow
        write down that Tom owes me twenty euros
        my locker number is 312 please remember it
        please keep it in mind I take my coffee black
        write it down the door sticks
        my shoe size is 43 note that
        for later my flight leaves at ten
        the ladder is in the shed keep that for me
        put it in your notes that the boiler is serviced in March
        I want you to remember Lisa likes lilies
        memorize this the door code is 4 7 1 1
        bear in mind that I don't eat fish
        jot this down the parcel is at the neighbour's
        make yourself a note my dentist is called Weber
        you should know that my son was born in May
        remember for me that the warranty runs until June
        keep a note of it my size is medium
        add to your notes that Eva prefers tea
    """
    text = " ".join(note.split())
    if not text:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, "remember: there is nothing in `note`.", field="note")
    note_id = f"{ctx.sid}.{ctx.call_id}"
    await ctx.emit(NoteRemembered(note_id=note_id, account=ctx.account, text=text))
    await ctx.notes.add(ctx.account, Note(note_id=note_id, text=text, ts=ctx.now))
    return Reversible(result={"note": text, "spoken": "I'll remember that."}, undo={"note_id": note_id})


@function(
    effect="read",
)
async def recall(query: Annotated[str, Meta(max_length=NOTE_LIMIT, examples=["spare key"])], ctx: Context) -> dict[str, Any]:
    """Look up what the user told you earlier: where their things are, names, dates, preferences.

    Args:
        query: What to look for; empty for the latest notes.

    Examples:
        where did I put my passport
        what did I tell you about Anna
        do you remember my locker number
        when does the plumber come did I say
        what do you know about my bike
        look in my notes for the meeting
        where is the box with the winter clothes
        where are my old tax papers
        who owes me money
        which notes do you have
        what's my locker number
        where are my spare glasses
        where is the ladder again
        what time does my flight leave did I mention it
        tell me what I told you about Paul
        what am I allergic to
        what colour is my car
        have I ever told you my shoe size
        which seat did I say I like
        what was the door code again
        when was my son born do you still know it
        did I tell you who has the spare key
        have you got a note about the boiler
        who likes lilies
    """
    found = await asyncio.to_thread(rank, query, await ctx.notes.of(ctx.account))  # ranking a thousand notes takes a third of a second
    texts = [note.text for note in found]
    if not texts:
        spoken = f"I have no note about {query.strip()}." if query.strip() else "I have no notes yet."
    elif len(texts) == 1:
        spoken = f"You asked me to remember: {texts[0]}"
    else:
        spoken = f"I found {len(texts)} notes. The first: {texts[0]}"
    return {"notes": texts, "spoken": spoken}


def rank(query: str, notes: list[Note]) -> list[Note]:
    """Return the notes that share words with `query`: most shared words first, then newest first. Without words, return the newest notes.

    `notes` come newest first; at most five are returned.
    """
    wanted = stems(query)
    if not wanted:
        return notes[:FOUND_LIMIT]
    scored = [(shared(wanted, stems(note.text)), note) for note in notes]
    best = sorted((pair for pair in scored if pair[0]), key=lambda pair: -pair[0])
    return [note for _, note in best[:FOUND_LIMIT]]

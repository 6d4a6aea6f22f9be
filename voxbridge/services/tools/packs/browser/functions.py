"""Declarations of the functions that a page answers (docs/tools.md, Functions of the page). They have no body: the voice service sends a
call to the page of its session, and a call that comes to an executor has no page."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from voxbridge.services.tools.registry import function

TIMEOUT_S = 5
"""Seconds in which a page answers."""


@function(kind="browser", effect="read", timeout_s=TIMEOUT_S)
def navigate_page(path: Annotated[str, Meta(min_length=1, max_length=256, examples=["/sessions"])]) -> None:
    """Open another page of this site in the user's browser.

    Args:
        path: Path or name of the page.

    Examples:
        open the sessions page
        take me to the agents page
        go to slash keys
        bring up my past calls in the browser
        switch over to the page with the tools
        navigate back to the start page
        can you show me the settings screen
        go to the home page please
    """


@function(kind="browser", effect="read", timeout_s=TIMEOUT_S)
def get_current_page() -> None:
    """Tell which page of this site the user is on.

    Examples:
        which page am I on
        where am I right now in the app
        what is the title of this page
        what screen is this
        which address is open in my browser
        tell me what page I have open
        where have I ended up
    """


@function(kind="browser", effect="read", timeout_s=TIMEOUT_S)
def get_workspace_state() -> None:
    """Tell the state of the user's window: connection, microphone, theme, selected text, open panels.

    Examples:
        what have I selected
        is my microphone on
        am I still connected
        what is the state of my workspace
        which panels are open at the moment
        which model is chosen for the next call
        is the dark theme on
        what does my window look like right now
    """


@function(kind="browser", effect="read", timeout_s=TIMEOUT_S)
def read_page_content() -> None:
    """Read the text that is visible on the user's page.

    Examples:
        read this page to me
        what does it say on my screen
        read out what is on the page
        what is written here
        summarize the page I am looking at
        tell me what this page says
        look at my page and read it
        what can you see on the screen
    """


@function(kind="browser", effect="write", timeout_s=TIMEOUT_S)
def switch_model(model: Annotated[str, Meta(min_length=1, max_length=128, examples=["gemini"])]) -> None:
    """Choose the model of the user's next call; in a call with an agent on that model, hand over to it.

    Args:
        model: Name of the model or of its provider.

    Examples:
        switch to gemini
        use claude from now on
        I would rather talk to the local model
        change the model to openai
        next time I want the google model
        let me talk to another model use claude
        go back to the models on this machine
    """


@function(kind="browser", effect="write", timeout_s=TIMEOUT_S)
def switch_theme(theme: Literal["light", "dark", "system"]) -> None:
    """Change the colours of the user's page.

    Args:
        theme: The colours; those of the device with system.

    Examples:
        turn on dark mode
        make the page light
        switch to the dark theme
        it is too bright change the colours
        use the theme of my system
        light mode please
        can you make the screen darker
        go back to the bright colours
    """

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
        go to the tools page
        show me the page with my keys
        let's go to settings
        on to agents please
        please open agents
        jump to the benchmarks page
        I want to see the calls page
        show the approvals
        move to the tasks page
        back to the main screen
        bring me to the macros
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
        what page is open
        what's the name of this screen
        on which screen have I landed
        tell me the name of the page I'm looking at
        where in the application am I
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
        what text is marked
        do you have a connection to me
        did I mute myself
        which theme do I use now
        is a panel open beside the page
        show my workspace state
        is the call still connected
        what's selected right now
        which model do I talk to next
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
        read the screen aloud
        what is on the page
        read me the text here
        give me the gist of this page
        tell me everything that stands here
        what's this page about
        can you read what I see
        what is displayed at the moment
    """


@function(kind="browser", effect="read", timeout_s=TIMEOUT_S)
def steer_tour(action: Literal["next", "back", "skip", "stop", "explain"]) -> None:
    """Go on in the guided tour on the page, go back, skip a step, have it explained, or stop.

    Args:
        action: How to go on.

    Examples:
        next step of the tour
        go back one step in the tour
        skip this part of the tour
        stop the guided tour
        explain this step of the tour in more detail
        carry on with the tour
        end the walkthrough
        what comes next in this tour
        the tour step before please
        leave the tour now
        on to the following step of the tour
        that part of the tour again
        tell me more about this step
        finish the tour here
        I have seen enough of the tour
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
        please let openai answer me
        I prefer the local model
        change over to claude
        can I have another model
        put me on the google model
        I want claude for the next call
        try it with the openai model
        go local from now on
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
        make it dark
        I want the light colours back
        the screen is too dark brighten it
        it's blinding switch to dark
        follow the colours of my computer
        night colours please
    """

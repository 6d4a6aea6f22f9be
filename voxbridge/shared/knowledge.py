"""Questions to the knowledge service and its answers: the messages on `vx.svc.knowledge.<verb>`, and the client that asks.

Owns their shapes and limits, and how an error crosses. Does not own the graphs (`voxbridge.services.knowledge`). A question that is not
answered in time is `UNAVAILABLE`; each may be asked again without another effect.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Generic, Protocol, TypeVar

import msgspec
from msgspec import Meta
from nats.aio.client import Client
from nats.errors import Error as NatsError

from voxbridge.shared.bus.accounts import knowledge_subject
from voxbridge.shared.errors import Code, VoxbridgeError

QUERY_LIMIT: Final = 1_000
NAME_LIMIT: Final = 60
TEXT_LIMIT: Final = 786_432
"""Bytes of a document's text: a message of the bus holds a mebibyte."""

FOUND_LIMIT: Final = 20
"""Passages of an answer."""

ANSWER_S: Final = 25.0
"""Seconds that an answer may take. A document of the largest size takes the service a few seconds, on a busy machine more."""

LONG_ANSWER_S: Final = 900.0
"""Seconds that the administrator's questions about whole graphs may take."""

Name = Annotated[str, Meta(min_length=1, max_length=NAME_LIMIT)]


class Graph(msgspec.Struct, frozen=True, kw_only=True):
    """A graph of an account: its name, how much it holds, and when its last document was added (µs; 0 without one)."""

    name: str
    documents: int
    passages: int
    entities: int
    relations: int
    changed: int


class Graphs(msgspec.Struct, frozen=True, kw_only=True):
    """The graphs of an account, by name; `by` says what they are searched by."""

    graphs: tuple[Graph, ...]
    by: str


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """A passage that was found: the graph, the document, the headings that it stands under, its line, its text, and its score."""

    graph: str
    source: str
    title: str
    headings: tuple[str, ...]
    line: int
    text: str
    score: float


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """An entity of a graph: kind, name, number of passages with it, the entities that it stands together with most often, and who told of
    it: `rules` or `model`."""

    graph: str
    kind: str
    name: str
    passages: int
    related: tuple[str, ...] = ()
    told_by: str = "rules"


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a search, the best first; `by` says by what it searched, `left_out` names the graphs that could not be searched, with
    why."""

    passages: tuple[Passage, ...]
    nodes: tuple[Node, ...] = ()
    by: str
    left_out: dict[str, str] = {}


class Ranked(msgspec.Struct, frozen=True):
    """An entity, and how much it counts in its graph: its share of the PageRank."""

    name: str
    kind: str
    rank: float
    degree: int


class Analytics(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a graph: how much it holds, its components and communities, and the entities that count most."""

    name: str
    documents: int
    passages: int
    entities: int
    relations: int
    components: int
    communities: int
    largest: tuple[tuple[str, ...], ...]
    """The largest communities, each with the entities of it that count most."""

    top: tuple[Ranked, ...]
    version: int


class Ingested(msgspec.Struct, frozen=True, kw_only=True):
    """A document that is in its graph: whether that changed anything, the SHA-256 of its text, and what it and the graph hold now."""

    graph: str
    source: str
    changed: bool
    digest: str
    passages: int
    total: int


class Rebuilt(msgspec.Struct, frozen=True, kw_only=True):
    """Number of graphs whose index was made again."""

    graphs: int


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a replay: graphs, documents and answers of models that were given to the rules again, and the differences in words."""

    graphs: int
    documents: int
    readings: int
    differences: tuple[str, ...]


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """Number of graphs that were removed."""

    graphs: int


_A = TypeVar("_A")


class Question(msgspec.Struct, Generic[_A], frozen=True, kw_only=True):
    """A question to the service about an account."""

    verb: ClassVar[str] = ""
    answer_s: ClassVar[float] = ANSWER_S
    account: Annotated[str, Meta(min_length=1, max_length=64)]


class ListGraphs(Question[Graphs], frozen=True, kw_only=True):
    """List the graphs."""

    verb: ClassVar[str] = "graphs"


class Search(Question[Found], frozen=True, kw_only=True):
    """Search graphs: those that are named, or all. With `kind` only entities of that kind; `nodes` says whether entities are wanted."""

    verb: ClassVar[str] = "search"
    query: Annotated[str, Meta(min_length=1, max_length=QUERY_LIMIT)]
    graphs: tuple[Name, ...] = ()
    kind: str = ""
    nodes: bool = False
    count: Annotated[int, Meta(ge=1, le=FOUND_LIMIT)] = 5


class Analyse(Question[Analytics], frozen=True, kw_only=True):
    """Compute the figures of a graph."""

    verb: ClassVar[str] = "analytics"
    graph: Name


class Ingest(Question[Ingested], frozen=True, kw_only=True):
    """Put a document into a graph, in place of the one of the same source; the graph is made if it is not there. `at` is the time (µs)."""

    verb: ClassVar[str] = "ingest"
    graph: Name
    source: Annotated[str, Meta(min_length=1, max_length=500)]
    title: Annotated[str, Meta(max_length=300)]
    text: str
    at: int


class Forget(Question[Forgotten], frozen=True, kw_only=True):
    """Remove all graphs of the account, or the one that is named."""

    verb: ClassVar[str] = "forget"
    graph: str = ""


class Rebuild(Question[Rebuilt], frozen=True, kw_only=True):
    """Make the indexes of the account's graphs again from what they hold."""

    verb: ClassVar[str] = "rebuild"
    answer_s: ClassVar[float] = LONG_ANSWER_S


class Replay(Question[Replayed], frozen=True, kw_only=True):
    """Give the documents of the account's graphs to the current rules, and compare what comes out with what is kept."""

    verb: ClassVar[str] = "replay"
    answer_s: ClassVar[float] = LONG_ANSWER_S


ANSWERS: Final[dict[str, type[msgspec.Struct]]] = {
    "graphs": Graphs,
    "search": Found,
    "analytics": Analytics,
    "ingest": Ingested,
    "forget": Forgotten,
    "rebuild": Rebuilt,
    "replay": Replayed,
}
_encoder = msgspec.json.Encoder()


class Asks(Protocol):
    """A way to ask the service."""

    async def __call__(self, question: Question[_A]) -> _A:
        """Return the answer. Raises as `ask` does."""


def asking(nc: Client) -> Asks:
    """Return a way to ask over a connection."""

    async def asks(question: Question[_A]) -> _A:
        return await ask(nc, question)

    return asks


async def ask(nc: Client, question: Question[_A]) -> _A:
    """Ask the service, and return its answer.

    Raises what it answers as an error, `UNAVAILABLE` where no service answers in its `answer_s`.
    """
    try:
        reply = await nc.request(knowledge_subject(question.verb), _encoder.encode(question), timeout=question.answer_s)
    except (NatsError, TimeoutError) as error:
        message = "The knowledge service does not answer: start it, or look at its log, and ask again."
        raise VoxbridgeError(Code.UNAVAILABLE, message, retryable=True) from error
    if (reply.headers or {}).get("Nats-Service-Error-Code"):
        raise _error(reply.data)
    return msgspec.json.decode(reply.data, type=ANSWERS[question.verb])  # type: ignore[return-value]  # as the question declares


def _error(data: bytes) -> VoxbridgeError:
    try:
        return VoxbridgeError.from_dict(msgspec.json.decode(data, type=dict[str, object]))
    except (msgspec.MsgspecError, ValueError, KeyError):
        return VoxbridgeError(Code.INTERNAL, "The knowledge service answered with an error that it does not explain.")

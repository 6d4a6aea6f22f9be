"""Declarations of the functions about knowledge graphs."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.packs.knowledge import spoken
from voxbridge.services.tools.packs.knowledge.documents import Read, documents, given
from voxbridge.services.tools.registry import Local, function
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.knowledge import NAME_LIMIT, QUERY_LIMIT, Analyse, Found, Ingest, ListGraphs, Search

PASSAGES: Final = 5
NODES: Final = 8
GRAPHS_LIMIT: Final = 10
"""Graphs that `cross_kg_search` searches."""

TEXT_LIMIT: Final = 50_000
"""Characters of a text that is given in a call."""

REPORTED: Final = 10
"""Documents in a result that could not be read; the others are counted."""

Query = Annotated[str, Meta(min_length=1, max_length=QUERY_LIMIT, examples=["who founded the company"])]
Database = Annotated[str, Meta(min_length=1, max_length=NAME_LIMIT, examples=["handbook"])]
NodeType = Literal["any", "name", "code", "date", "address", "link", "heading"]


@function(effect="read", timeout_s=30)
async def list_kgs(ctx: Context) -> dict[str, Any]:
    """List the knowledge graphs: what the user's documents are kept in.

    Examples:
        which knowledge graphs are there
        list my knowledge bases
        what do you have in your knowledge graphs
        how many knowledge graphs do I have
        show me the knowledge databases
        what have I taught you so far
        how big is the knowledge base by now
        what graphs can I search
        give me an overview of the graphs
        name our knowledge graphs
        list all the graphs
        how are my graphs called
        what knowledge bases exist here
        tell me what the graphs are named
    """
    found = await ctx.knowledge(ListGraphs(account=ctx.account))
    graphs = [
        {
            "name": one.name,
            "documents": one.documents,
            "chunks": one.passages,
            "nodes": one.entities,
            "edges": one.relations,
            "changed": one.changed,
        }
        for one in found.graphs
    ]
    if not graphs:
        return {
            "graphs": [],
            "count": 0,
            "searched_by": found.by,
            "spoken": "There is no knowledge graph yet. Ask me to ingest a document into one.",
        }
    names = ", ".join(f"{one.name} with {spoken.counted(one.documents, 'document')}" for one in found.graphs[:PASSAGES])
    more = f", and {len(graphs) - PASSAGES} more" if len(graphs) > PASSAGES else ""
    said = f"There {'is' if len(graphs) == 1 else 'are'} {spoken.counted(len(graphs), 'knowledge graph')}: {names}{more}."
    return {"graphs": graphs, "count": len(graphs), "searched_by": found.by, "spoken": said}


@function(effect="read", timeout_s=30)
async def query_kg(query: Query, ctx: Context) -> dict[str, Any]:
    """Answer a question from the user's documents, in all knowledge graphs.

    Args:
        query: The question.

    Examples:
        what do my documents say about the warranty
        look that up in the knowledge base
        who is responsible for billing by the documents I gave you
        search my knowledge for the onboarding date
        what does the handbook tell about holidays
        find in my documents how the pump is serviced
        check the knowledge graph for the supplier of the cells
        ask the knowledge base how refunds work
        look up the warranty rules in our knowledge
        according to our docs who approves a purchase
        what do we know about the billing outage
        what does the company knowledge say on travel costs
        is there something in our documents on the new laptops
        what have we got in our files about the merger
        is it written anywhere in our documents who signs
        check my documents for the notice period
    """
    found = await ctx.knowledge(Search(account=ctx.account, query=query, count=PASSAGES))
    return _told(query, found)


@function(effect="read", timeout_s=30)
async def search_kg(query: Query, database: Database, ctx: Context, node_type: NodeType = "any") -> dict[str, Any]:
    """Search one knowledge graph for passages, and for names, dates, code and links.

    Args:
        query: Words to find.
        database: Name of the graph.
        node_type: Kind of entity.

    Examples:
        search the handbook graph for overtime
        find people in the contracts graph
        which dates are in the project graph
        look for the word turbine in the research graph
        find functions about payment in the code graph
        what is in the recipes knowledge graph about yeast
        which links does the wiki graph have on backups
        search the team wiki for onboarding
        look in the support tickets for login failures
        search the product docs graph for webhooks
        which people in the wiki know about invoices
        go through the tickets for printer trouble
        does the handbook mention parental leave anywhere
        what do the contracts say about penalties
        find documents on encryption in the wiki
        look up refunds in the handbook
        what's there on batteries in product docs
        find Anna in the contracts graph
    """
    kind = "" if node_type == "any" else node_type
    found = await ctx.knowledge(Search(account=ctx.account, query=query, graphs=(database,), kind=kind, nodes=True, count=NODES))
    if not found.passages and found.nodes:
        names = ", ".join(one.name for one in found.nodes[:3])
        return {**_shown(found), "spoken": f"I found {names}."}
    return _told(query, found)


@function(kind="async", effect="read", timeout_s=300)
async def cross_kg_search(query: Query, ctx: Context) -> dict[str, Any]:
    """Search all knowledge graphs one by one, as a task, and compare what each has.

    Args:
        query: Words to find.

    Examples:
        search across all knowledge graphs for lithium
        look through every knowledge base for that name
        which of my graphs know something about Lisbon
        compare what all the graphs say on safety
        do a cross search for the supplier
        go through all my databases and find the contract
        search all the graphs at once for single sign on
        look across every knowledge base for outages
        search everywhere in all graphs for Project Falcon
        cross reference customer churn over all graphs
        do a combined search of every graph for refunds
        which knowledge bases mention the recall
        look for that in every graph there is
        is there a graph that mentions solar panels
        search the lot for invoices
        check all of the knowledge graphs for this phrase
    """
    known = (await ctx.knowledge(ListGraphs(account=ctx.account))).graphs
    graphs, others = known[:GRAPHS_LIMIT], [graph.name for graph in known[GRAPHS_LIMIT:]]
    results: list[dict[str, Any]] = []
    searched_by = ""
    for number, graph in enumerate(graphs, start=1):
        try:
            found = await ctx.knowledge(Search(account=ctx.account, query=query, graphs=(graph.name,), count=2))
            results.append({"database": graph.name, "passages": [spoken.passage(one) for one in found.passages]})
            searched_by = found.by
        except VoxbridgeError as error:
            results.append({"database": graph.name, "passages": [], "error": error.message})
        await ctx.progress(number / len(graphs), f"searched {graph.name}")
    having = [one["database"] for one in results if one["passages"]]
    said = f"{spoken.counted(len(having), 'graph')} of {len(results)} had something: {', '.join(having)}." if having else "No graph had it."
    found_all: dict[str, Any] = {"results": results, "count": len(having), "searched_by": searched_by}
    if others:
        said = f"{said} {GRAPHS_LIMIT} graphs are searched at a time, so {spoken.counted(len(others), 'graph')} had no turn."
        found_all["not_searched"] = others
    return found_all | {"announce": said, "spoken": said}


@function(effect="read", timeout_s=60)
async def get_kg_analytics(database: Database, ctx: Context) -> dict[str, Any]:
    """Tell what counts most in a knowledge graph: its central names, communities and parts.

    Args:
        database: Name of the graph.

    Examples:
        analyse the handbook graph
        what is most important in the research graph
        give me statistics on the contracts knowledge graph
        which names are central in the project graph
        how many communities does the wiki graph have
        show the page rank of the news graph
        how many nodes and edges has the handbook graph
        what communities are there in the wiki graph
        give me analytics for the tickets graph
        how well connected is the contracts graph
        analyse the structure of the research graph
        what are the key topics of the wiki graph
        how many entities are there in product docs
        what stands out in the research graph
        give me the numbers on the team wiki
        the structure of the contracts graph please
        how densely linked is the handbook
    """
    found = await ctx.knowledge(Analyse(account=ctx.account, graph=database))
    names = ", ".join(one.name for one in found.top[:3])
    size = f"{spoken.counted(found.documents, 'document')}, {spoken.counted(found.passages, 'passage')} and {found.entities} entities"
    return {
        "database": found.name,
        "documents": found.documents,
        "chunks": found.passages,
        "nodes": found.entities,
        "edges": found.relations,
        "components": found.components,
        "communities": {"count": found.communities, "largest": [list(one) for one in found.largest]},
        "top": [{"name": one.name, "kind": one.kind, "rank": one.rank, "degree": one.degree} for one in found.top],
        "spoken": f"{found.name} has {size}. " + (f"What counts most: {names}." if names else "It has no entities."),
    }


@function(kind="async", effect="write", idempotent=True, timeout_s=1_800)
async def ingest_to_kg(
    database: Database,
    source: Annotated[str, Meta(min_length=1, max_length=500, examples=["handbook.md"])],
    ctx: Context,
    text: Annotated[str, Meta(max_length=TEXT_LIMIT), Local(None)] = "",
) -> dict[str, Any]:
    """Put documents into a knowledge graph, which is made if it is new.

    Args:
        database: Name of the graph.
        source: A file or folder of the workspace, a web address, or a text's name.
        text: A text to put in under that name.

    Examples:
        ingest the file handbook dot md into the handbook graph
        put the docs folder into the project knowledge graph
        add this page to my research graph
        learn the file contract dot txt for the contracts graph
        take the readme into the code graph
        feed the notes folder to the knowledge base called ideas
        ingest the report into product docs
        load this document into support tickets
        index the manual for the product docs
        the knowledge graph should learn the file plan dot md
        put this file into the support tickets
        let the team wiki have this page
        the wiki graph needs the new guidelines add them
        import everything in the reports folder into finance
        pull the web page example dot com into the research graph
        store this article in my reading graph
        teach the helpdesk graph the troubleshooting guide
        make the onboarding slides part of the people graph
        update the recipes graph with the new cookbook
        include the price list in the sales knowledge
        read the archive folder into the history graph
    """
    found = given(source, text) if text.strip() else await documents(source, ctx)
    into, done = _Ingested(database), 0
    async for document in found.each:
        await into.take(document, ctx, alone=found.total == 1)
        done += 1
        await ctx.progress(done / found.total, f"{done} of {found.total}")
    return into.told()


class _Ingested:
    """Documents that go into a graph: how many changed it, were there already, or could not be read, and why."""

    def __init__(self, graph: str) -> None:
        self._database = self._graph = graph
        self._changed = self._same = self._chunks = 0
        self._left_out: list[dict[str, str]] = []

    async def take(self, document: Read, ctx: Context, *, alone: bool) -> None:
        """Put a document into the graph. One that is refused is left out, unless it is `alone`."""
        if document.why:
            self._left_out.append({"source": document.source, "why": document.why})
            return
        title = document.title[:300]
        asked = Ingest(account=ctx.account, graph=self._database, source=document.source, title=title, text=document.text, at=ctx.now)
        try:
            taken = await ctx.knowledge(asked)
        except VoxbridgeError as error:
            if alone or error.code not in (Code.INVALID_ARGUMENT, Code.TOO_LARGE):
                raise
            self._left_out.append({"source": document.source, "why": error.message})
            return
        self._graph, self._chunks = taken.graph, self._chunks + taken.passages
        self._changed, self._same = self._changed + taken.changed, self._same + (not taken.changed)

    def told(self) -> dict[str, Any]:
        """Return the function's result."""
        changed, same, missing = self._changed, self._same, len(self._left_out)
        parts = [f"{spoken.counted(changed, 'document')} went into {self._graph}" if changed else f"Nothing in {self._graph} changed"]
        parts += [f"{same} were there already"] if same and changed else []
        parts += [f"{missing} could not be read"] if missing else []
        said = f"{', '.join(parts)}."
        return {
            "database": self._graph,
            "documents": changed,
            "unchanged": same,
            "chunks": self._chunks,
            "left_out": self._left_out[:REPORTED],
            "left_out_count": missing,
            "announce": said,
            "spoken": said,
        }


def _shown(found: Found) -> dict[str, Any]:
    return {
        "passages": [spoken.passage(one) for one in found.passages],
        "nodes": [spoken.node(one) for one in found.nodes],
        "searched_by": found.by,
        **({"left_out": found.left_out} if found.left_out else {}),
    }


def _told(query: str, found: Found) -> dict[str, Any]:
    if not found.passages:
        message = "No document has any of these words. Say it in other words, or ask which knowledge graphs there are."
        raise VoxbridgeError(Code.NOT_FOUND, message, field="query")
    return {**_shown(found), "count": len(found.passages), "spoken": spoken.best_sentence(query, found.passages[0])}

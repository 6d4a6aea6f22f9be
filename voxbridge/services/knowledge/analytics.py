"""Figures of a graph: components, communities, and the entities that count most.

Owns what is computed and by which library: PageRank and components by rustworkx, communities by Leiden's method (graspologic). The same
graph gives the same figures. Blocks: seconds for tens of thousands of entities.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import graspologic_native
import rustworkx

from voxbridge.services.knowledge.core.entities import Entity
from voxbridge.services.knowledge.store.graph_file import Counts, Relation
from voxbridge.shared.knowledge import Analytics, Ranked

TOP: Final = 10
COMMUNITIES: Final = 5
MEMBERS: Final = 5
_SEED: Final = 1


def analysed(name: str, counts: Counts, entities: dict[int, Entity], relations: list[Relation]) -> Analytics:
    """Return the figures of a graph with these entities by id."""
    graph: rustworkx.PyDiGraph[int, float] = rustworkx.PyDiGraph()
    places = dict(zip(entities, graph.add_nodes_from(list(entities)), strict=True))
    graph.add_edges_from([edge for one in relations for edge in _both(places[one.a], places[one.b], float(one.count))])
    ranks = rustworkx.pagerank(graph, weight_fn=float) if places else {}
    rank_of = {number: float(ranks[place]) for number, place in places.items()}
    degrees: dict[int, int] = defaultdict(int)
    for one in relations:
        degrees[one.a] += 1
        degrees[one.b] += 1
    order = sorted(entities, key=lambda number: (-rank_of[number], entities[number].key))
    groups = _communities(relations)
    largest = sorted(groups, key=lambda group: (-len(group), min(group)))[:COMMUNITIES]
    place_of = {number: place for place, number in enumerate(order)}
    return Analytics(
        name=name,
        documents=counts.documents,
        passages=counts.passages,
        entities=counts.entities,
        relations=counts.relations,
        components=rustworkx.number_weakly_connected_components(graph),
        communities=len(groups),
        largest=tuple(tuple(entities[number].name for number in sorted(group, key=place_of.__getitem__)[:MEMBERS]) for group in largest),
        top=tuple(Ranked(entities[one].name, entities[one].kind, round(rank_of[one], 6), degrees[one]) for one in order[:TOP]),
        version=counts.version,
    )


def _both(a: int, b: int, weight: float) -> tuple[tuple[int, int, float], tuple[int, int, float]]:
    return (a, b, weight), (b, a, weight)


def _communities(relations: list[Relation]) -> list[set[int]]:
    """Return the communities of the entities that are related to another one."""
    if not relations:
        return []
    edges = [(str(one.a), str(one.b), float(one.count)) for one in relations]
    _, found = graspologic_native.leiden(edges=edges, seed=_SEED)
    groups: dict[int, set[int]] = defaultdict(set)
    for number, group in found.items():
        groups[group].add(int(number))
    return list(groups.values())

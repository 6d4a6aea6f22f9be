"""The file of a graph: documents, passages, entities and how they are related, in SQLite.

Owns the truth about a graph: the texts of its documents in the order in which they were taken, and what a model said about their passages.
All else in the file is made of these by `core`, and can be made again and compared (`replay`). Every change of a document is one
transaction, which counts the graph's version up by one. What was made from the file (`words`, `vectors`) notes the version that it has
seen, and is brought up to date from what changed since. A crash leaves the
version before or the one behind, and nothing in between; a file that is broken is told as such and is never repaired unseen.

One thread at a time may write. Everything blocks.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from voxbridge.services.knowledge.core.documents import Piece
from voxbridge.services.knowledge.core.entities import Entity, Found
from voxbridge.shared.errors import Code, VoxbridgeError

FORMAT: Final = 2
PASSAGES_LIMIT: Final = 200_000
"""Passages of a graph."""

_BUSY_MS: Final = 5_000
_SCHEMA: Final = """
create table meta (name text primary key, value text not null) without rowid;
create table documents (
    id integer primary key, source text not null unique, title text not null, digest text not null, added integer not null,
    text blob not null
);
create table passages (
    id integer primary key autoincrement, document integer not null references documents on delete cascade, place integer not null,
    headings text not null, line integer not null, text text not null, version integer not null
);
create index passages_by_document on passages (document);
create index passages_by_version on passages (version);
create table removed (passage integer primary key, version integer not null) without rowid;
create table entities (id integer primary key, kind text not null, key text not null, name text not null, unique (kind, key));
create table mentions (
    passage integer not null references passages on delete cascade, entity integer not null references entities, told_by text not null,
    primary key (passage, entity)
) without rowid;
create index mentions_by_entity on mentions (entity);
create table together (
    passage integer not null references passages on delete cascade, a integer not null, b integer not null, count integer not null,
    told_by text not null, label text not null, primary key (passage, a, b, told_by)
) without rowid;
create index together_by_a on together (a, b);
create table readings (
    passage integer primary key references passages on delete cascade, model text not null, answer text not null, read integer not null
) without rowid;
"""

_OF: Final = "join passages p on p.id = {0}.passage join documents d on d.id = p.document"
_OF_DOCUMENT: Final = "from passages p join documents d on d.id = p.document"
_KEPT: Final = f"select p.id, d.source, d.title, p.headings, p.line, p.text, p.place {_OF_DOCUMENT}"
_MADE: Final = (
    "select 'document', source, title, digest from documents order by 2",
    f"select 'passage', d.source, p.place, p.headings, p.line, p.text {_OF_DOCUMENT} order by 2, p.place",
    f"""select 'mention', d.source, p.place, e.kind, e.key, m.told_by from mentions m {_OF.format("m")}
        join entities e on e.id = m.entity order by 2, p.place, 4, 5""",  # noqa: S608 - no value in it
    f"""select 'together', d.source, p.place, min(a.kind || ' ' || a.key, b.kind || ' ' || b.key),
        max(a.kind || ' ' || a.key, b.kind || ' ' || b.key), t.count, t.told_by, t.label from together t {_OF.format("t")}
        join entities a on a.id = t.a join entities b on b.id = t.b order by 2, p.place, 4, 5, t.told_by""",  # noqa: S608 - no value in it
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document to add: where it is from, its title, its text and the SHA-256 of it, when (µs), and what `core` made of it."""

    source: str
    title: str
    text: str
    digest: str
    added: int
    pieces: Sequence[Piece]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A passage as it is kept, with the document that it is from."""

    id: int
    source: str
    title: str
    headings: tuple[str, ...]
    line: int
    text: str
    place: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """An answer of a model about a passage, word for word, and when (µs)."""

    model: str
    answer: str
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Numbers of a graph, its version, and when its last document was added (µs; 0 without one)."""

    documents: int
    passages: int
    entities: int
    relations: int
    version: int
    changed: int


@dataclass(frozen=True, slots=True)
class Relation:
    """Two entities, by id, and the number of sentences in which they stand together."""

    a: int
    b: int
    count: int


class GraphFile:
    """An open file; made if it is not there. Raises `UNAVAILABLE` where the file cannot be used."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with _told(path):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            try:
                self._set_up()
            except BaseException:
                self._db.close()
                raise

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _set_up(self) -> None:
        for pragma in ("journal_mode=wal", "synchronous=full", "foreign_keys=on", f"busy_timeout={_BUSY_MS}", "secure_delete=on"):
            self._db.execute(f"pragma {pragma}").close()
        self.path.chmod(0o600)
        (found,) = self._db.execute("pragma user_version").fetchone()
        if found == 0:
            with self._change():
                for statement in _SCHEMA.strip().split(";\n"):
                    self._db.execute(statement)
                self._db.execute("insert into meta values ('version', '0')")
                self._db.execute(f"pragma user_version={FORMAT}")
        elif found != FORMAT:
            message = f"The graph {self.path.stem} was written by another release (format {found}; this one has {FORMAT})."
            raise VoxbridgeError(Code.UNAVAILABLE, message, retryable=False)

    @contextmanager
    def _change(self) -> Iterator[None]:
        self._db.execute("begin immediate")
        try:
            yield
        except BaseException:
            self._db.execute("rollback")
            raise
        self._db.execute("commit")

    # --- writing ---

    def put(self, document: Document) -> bool:
        """Add a document, in place of the one of the same source. Return false where that one has the same text already.

        Raises `TOO_LARGE` where the graph would have more than `PASSAGES_LIMIT` passages, `UNAVAILABLE` where the disk does not take it.
        """
        with _told(self.path), self._change():
            old = self._db.execute("select id, digest from documents where source = ?", (document.source,)).fetchone()
            if old is not None and old[1] == document.digest:
                return False
            version = self._next_version()
            if old is not None:
                self._remove(old[0], version)
            count = self.size()
            if count + len(document.pieces) > PASSAGES_LIMIT:
                message = (
                    f"The graph would have {count + len(document.pieces)} passages; it has {PASSAGES_LIMIT} at most. Begin another one."
                )
                raise VoxbridgeError(Code.TOO_LARGE, message, field="database", limit=PASSAGES_LIMIT)
            self._add(document, version)
            if old is not None:
                self._forget_unmentioned()
            return True

    def read(self, source: str, place: int, reading: Reading, found: Found) -> bool:
        """Add what a model said about a passage, beside what the rules found. Return false where the passage is not there any more, or was
        read already. Raises `UNAVAILABLE`."""
        with _told(self.path), self._change():
            select = "select p.id from passages p join documents d on d.id = p.document where d.source = ? and p.place = ?"
            row = self._db.execute(select, (source, place)).fetchone()
            if row is None or self._db.execute("select 1 from readings where passage = ?", row).fetchone():
                return False
            self._next_version()
            self._db.execute("insert into readings values (?, ?, ?, ?)", (row[0], reading.model, reading.answer, reading.at))
            self._relate(row[0], found)
            return True

    def _next_version(self) -> int:
        (version,) = self._db.execute("update meta set value = value + 1 where name = 'version' returning value").fetchone()
        return int(version)

    def _remove(self, document: int, version: int) -> None:
        self._db.execute("insert into removed select id, ? from passages where document = ?", (version, document))
        self._db.execute("delete from documents where id = ?", (document,))

    def _add(self, document: Document, version: int) -> None:
        text = zlib.compress(document.text.encode())
        row = (document.source, document.title, document.digest, document.added, text)
        number = self._db.execute("insert into documents (source, title, digest, added, text) values (?, ?, ?, ?, ?)", row).lastrowid
        insert = "insert into passages (document, place, headings, line, text, version) values (?, ?, ?, ?, ?, ?)"
        for place, (passage, found) in enumerate(document.pieces):
            values = (number, place, "\n".join(passage.headings), passage.line, passage.text, version)
            added = self._db.execute(insert, values).lastrowid
            self._relate(added, found)

    def _relate(self, passage: int | None, found: Found) -> None:
        ids = {entity: self._entity(entity) for entity in found.entities}
        mention = "insert into mentions values (?, ?, ?) on conflict do nothing"
        self._db.executemany(mention, [(passage, each, found.told_by) for each in ids.values()])
        pairs = [(passage, *sorted((ids[a], ids[b])), found.told_by, label) for (a, b), label in found.labelled()]
        together = "insert into together values (?, ?, ?, 1, ?, ?) on conflict do update set count = count + 1"
        self._db.executemany(together, pairs)

    def _entity(self, entity: Entity) -> int:
        values = (entity.kind, entity.key, entity.name)
        self._db.execute("insert into entities (kind, key, name) values (?, ?, ?) on conflict do nothing", values)
        return int(self._db.execute("select id from entities where kind = ? and key = ?", values[:2]).fetchone()[0])

    def _forget_unmentioned(self) -> None:
        self._db.execute("delete from entities where not exists (select 1 from mentions where entity = entities.id)")

    # --- reading ---

    def counts(self) -> Counts:
        """Return how much there is."""
        with _told(self.path):
            documents, passages, entities = (
                self._db.execute(f"select count(*) from {table}").fetchone()[0]  # noqa: S608 - of the tuple below
                for table in ("documents", "passages", "entities")
            )
            (relations,) = self._db.execute("select count(*) from (select distinct a, b from together)").fetchone()
            (changed,) = self._db.execute("select coalesce(max(added), 0) from documents").fetchone()
            return Counts(
                documents=documents, passages=passages, entities=entities, relations=relations, version=self.version(), changed=changed
            )

    def size(self) -> int:
        """Return the number of passages."""
        with _told(self.path):
            return int(self._db.execute("select count(*) from passages").fetchone()[0])

    def version(self) -> int:
        """Return the number of changes so far."""
        with _told(self.path):
            return int(self._db.execute("select value from meta where name = 'version'").fetchone()[0])

    def passages(self, ids: Sequence[int]) -> list[Kept]:
        """Return the passages of these ids that there are, in this order."""
        with _told(self.path):
            marks = ", ".join("?" * len(ids))
            select = (
                "select p.id, d.source, d.title, p.headings, p.line, p.text, p.place from passages p join documents d on d.id = p.document"
            )
            rows = self._db.execute(f"{select} where p.id in ({marks})", list(ids)).fetchall()
            found = {row[0]: _kept(row) for row in rows}
            return [found[one] for one in ids if one in found]

    def removed_since(self, version: int) -> list[int]:
        """Return the ids of the passages that were removed since a version."""
        with _told(self.path):
            return [row[0] for row in self._db.execute("select passage from removed where version > ?", (version,))]

    def added_since(self, version: int) -> Iterator[Kept]:
        """Yield the passages that were added since a version and are there."""
        return self._kept("p.version > ?", version)

    def passages_after(self, number: int) -> Iterator[Kept]:
        """Yield the passages whose id is above a number, by id."""
        return self._kept("p.id > ?", number)

    def readings(self) -> int:
        """Return the number of passages that a model has read."""
        with _told(self.path):
            return int(self._db.execute("select count(*) from readings").fetchone()[0])

    def unread(self, count: int) -> list[Kept]:
        """Return passages that no model has read, those first that were added first."""
        return list(islice(self._kept("p.id not in (select passage from readings) and ?", 1), count))

    def _kept(self, where: str, value: int) -> Iterator[Kept]:
        with _told(self.path), closing(self._db.execute(f"{_KEPT} where {where} order by p.id", (value,))) as rows:
            for row in rows:
                yield _kept(row)

    def passage_ids(self) -> list[int]:
        """Return the ids of all passages."""
        with _told(self.path):
            return [row[0] for row in self._db.execute("select id from passages order by id")]

    def entities(self, words: Sequence[str], kind: str | None, count: int) -> list[tuple[int, Entity, int, str]]:
        """Return entities that have these words in their name, those that are mentioned most first: id, entity, passages with it, and who
        told of it first: the rules before a model."""
        with _told(self.path):
            likes = " and ".join("key like ? escape '\\'" for _ in words) or "1"
            of_kind, kinds = ("kind = ?", [kind]) if kind else ("1", [])
            select = "select e.id, e.kind, e.name, count(*) as n, max(m.told_by) from entities e join mentions m on m.entity = e.id"
            query = f"{select} where {likes} and {of_kind} group by e.id order by n desc, e.key limit ?"
            rows = self._db.execute(query, [*(f"%{_escaped(word.casefold())}%" for word in words), *kinds, count])
            return [(row[0], Entity(row[1], row[2]), row[3], row[4]) for row in rows.fetchall()]

    def related(self, entity: int, count: int) -> list[tuple[Entity, int]]:
        """Return the entities that stand together with one most often, each with the number of sentences."""
        with _told(self.path):
            both = "select b as other, count from together where a = ?1 union all select a, count from together where b = ?1"
            query = f"select e.kind, e.name, sum(count) as n from ({both}) t join entities e on e.id = t.other group by e.id order by n desc, e.key limit ?2"  # noqa: S608, E501 - no value in it
            return [(Entity(row[0], row[1]), row[2]) for row in self._db.execute(query, (entity, count)).fetchall()]

    def sources(self) -> Iterator[tuple[str, str, str, int]]:
        """Yield source, title, text and time (µs) of each document, in the order in which they were taken."""
        with _told(self.path), closing(self._db.execute("select source, title, text, added from documents order by id")) as rows:
            for source, title, text, added in rows:
                yield source, title, zlib.decompress(text).decode(), added

    def told(self) -> Iterator[tuple[str, int, str, Reading]]:
        """Yield what models said: source and place of the passage, its text, and the reading."""
        select = "select d.source, p.place, p.text, r.model, r.answer, r.read from readings r join passages p on p.id = r.passage"
        with _told(self.path), closing(self._db.execute(f"{select} join documents d on d.id = p.document order by p.id")) as rows:
            for source, place, text, model, answer, read in rows:
                yield source, place, text, Reading(model=model, answer=answer, at=read)

    def made(self) -> Iterator[tuple[str, ...]]:
        """Yield what was made of the documents and of what models said, in an order and a form that do not depend on ids."""
        with _told(self.path):
            for select in _MADE:
                with closing(self._db.execute(select)) as rows:
                    for row in rows:
                        yield tuple(str(value) for value in row)

    def every_entity(self) -> dict[int, Entity]:
        """Return all entities by id."""
        with _told(self.path):
            return {row[0]: Entity(row[1], row[2]) for row in self._db.execute("select id, kind, name from entities")}

    def every_relation(self) -> list[Relation]:
        """Return all pairs of entities that stand together."""
        with _told(self.path):
            return [Relation(*row) for row in self._db.execute("select a, b, sum(count) from together group by a, b order by a, b")]


def _kept(row: tuple[int, str, str, str, int, str, int]) -> Kept:
    return Kept(id=row[0], source=row[1], title=row[2], headings=tuple(row[3].split("\n")), line=row[4], text=row[5], place=row[6])


def _escaped(word: str) -> str:
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Tell what SQLite or the file system says as an error that names the graph."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        retry = isinstance(error, sqlite3.OperationalError)
        raise VoxbridgeError(Code.UNAVAILABLE, f"The graph {path.stem} cannot be used now: {error}.", retryable=retry) from error

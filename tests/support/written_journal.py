"""A WrittenRun as a journal that the program opens too: its tables and its marks are those of ingest/journal/schema.cc."""
from tests.support.written_run import WrittenRun

_SCHEMA = """
PRAGMA application_id=0x544F4353;
PRAGMA user_version=2;
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE topic(number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, next INTEGER NOT NULL);
INSERT INTO meta VALUES('machine', 'test'), ('created', 0);
"""
_TABLE = "CREATE TABLE IF NOT EXISTS {0}(id INTEGER PRIMARY KEY, ts INTEGER NOT NULL, key BLOB, value BLOB, headers BLOB)"


class WrittenJournal(WrittenRun):
    """Call sealed() once all was written."""

    def sealed(self):
        if self.held is not None:
            self.release()
        self.database.executescript(_SCHEMA)
        for topic in ("acks", "telemetry", "tensors"):
            self.database.execute(_TABLE.format(topic))
            self.database.execute(f"INSERT INTO topic(name, next) SELECT '{topic}', coalesce(max(id) + 1, 0) FROM {topic}")
        self.database.close()
        return self.folder

// SQLite and fork(2): a training process forks its data loaders while the hook's threads work.
//
// SQLite keeps what it knows of open files in the process: a child that inherits it would believe
// in locks that only its parent has. So a fork waits until no thread is inside the journal, and a
// child that opens a journal of its own first closes what it inherited.
#pragma once

#include <sqlite3.h>

#include <string>

#include "core/result.h"
#include "ingest/journal/guard.h"

namespace tocsin::ingest {

/// Held by a thread while it works with the journal, for whole transactions; may be nested.
class JournalUse {
 public:
  JournalUse();
  ~JournalUse();
  JournalUse(const JournalUse&) = delete;
  JournalUse& operator=(const JournalUse&) = delete;
};

/// These inside a JournalUse. failed_precondition: this process was forked in the middle of its
/// parent's transaction, which a fork waits for in vain after 200 ms. The file, if it is there, is
/// held against other SQLites of this process until disconnect().
core::Result<FileGuard::File> before_connecting(const std::string& path);
void connected(sqlite3* handle, FileGuard::File file);
/// Once it has read: the log has an index now.
void index_made(FileGuard::File file, const std::string& path);
/// Closes it, unless it is the parent's and already closed.
void disconnect(sqlite3* handle);

}  // namespace tocsin::ingest

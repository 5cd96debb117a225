#include "ingest/journal/fork.h"

#include <pthread.h>

#include <chrono>
#include <map>
#include <new>
#include <shared_mutex>

#include "core/mutex.h"

namespace tocsin::ingest {
namespace {

constexpr std::chrono::milliseconds kLongestFork{200};

struct Gate {
  std::shared_timed_mutex mutex;  // shared: in use; exclusive: a fork is under way
  core::Mutex registry;           // taken inside `mutex` only
  std::map<sqlite3*, FileGuard::File> connections GUARDED_BY(registry);
  bool inherited GUARDED_BY(registry) = false;  // `connections` are our parent's
  bool unusable GUARDED_BY(registry) = false;
  FileGuard guard;
};

Gate& gate() {
  static Gate* const made = new Gate;  // outlives every thread
  return *made;
}

/// The fork under way found nobody inside. Of the thread that forks: several may fork at once.
thread_local bool quiet = false;

void before_fork() { quiet = gate().mutex.try_lock_for(kLongestFork); }

void after_fork_in_parent() {
  if (quiet) gate().mutex.unlock();
}

void after_fork_in_child() {
  Gate& self = gate();
  new (&self.mutex) std::shared_timed_mutex;  // its owner is a thread that this process has not
  new (&self.registry) core::Mutex;
  const core::MutexLock lock(self.registry);
  self.inherited = !self.connections.empty();
  self.unusable = self.unusable || !quiet;
}

thread_local int depth = 0;

}  // namespace

JournalUse::JournalUse() {
  static const int watching =
      pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  (void)watching;
  if (depth++ == 0) gate().mutex.lock_shared();
}

JournalUse::~JournalUse() {
  if (--depth == 0) gate().mutex.unlock_shared();
}

core::Result<FileGuard::File> before_connecting(const std::string& path) {
  Gate& self = gate();
  const core::MutexLock lock(self.registry);
  if (self.unusable) {
    return core::Error{core::Code::failed_precondition,
                       "this process was forked while its parent wrote the journal, and cannot "
                       "use one itself"};
  }
  if (!self.inherited) return self.guard.hold(path);
  self.inherited = false;
  for (const auto& [handle, file] : self.connections) {
    // Gives up nothing of the parent's: locks belong to processes, and no transaction is open.
    while (sqlite3_stmt* statement = sqlite3_next_stmt(handle, nullptr)) {
      sqlite3_finalize(statement);
    }
    sqlite3_close_v2(handle);
  }
  self.connections.clear();
  self.guard.forget();
  return self.guard.hold(path);
}

void connected(sqlite3* handle, FileGuard::File file) {
  const core::MutexLock lock(gate().registry);
  gate().connections.emplace(handle, file);
}

void index_made(FileGuard::File file, const std::string& path) {
  gate().guard.hold_index(file, path);
}

void disconnect(sqlite3* handle) {
  if (handle == nullptr) return;
  FileGuard::File file;
  {
    const core::MutexLock lock(gate().registry);
    const auto found = gate().connections.find(handle);
    if (found == gate().connections.end()) return;
    file = found->second;
    gate().connections.erase(found);
  }
  gate().guard.release(file, [handle] { sqlite3_close_v2(handle); });
}

}  // namespace tocsin::ingest

// Another SQLite in this process. A training process may have several: ours in the wheel, Python's module, TensorFlow's. None knows of
// the others, and locks on files belong to processes: the other one would find our files unused, empty the index of the log
// under us, delete the log when it closes, and its close() drops our locks.
//
// So we hold a file once more with locks that belong to an open file (fcntl F_OFD_*): they count against everybody, this process
// included, and go only when we let go. To SQLite that is one more reader, which reads nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "core/mutex.h"
#include "ingest/journal/directory.h"

namespace tocsin::ingest {

class FileGuard {
 public:
  using File = std::pair<std::uint64_t, std::uint64_t>;  // device and inode; {0, 0}: there is none

  /// Before a connection to the file; each hold() has its release().
  File hold(const std::string& path);
  /// Once a connection has made the index of the log, `path`-shm.
  void hold_index(File file, const std::string& path);
  /// `close` closes the connection. Nobody connects meanwhile: closing what the guard has open would drop their locks.
  void release(File file, const std::function<void()>& close);
  /// In a forked child: what is held is the parent's and stays so.
  void forget();

 private:
  struct Held {
    int users = 0;
    FileDescriptor file, index;
  };
  core::Mutex mutex_;
  std::map<File, Held> held_ GUARDED_BY(mutex_);
};

}  // namespace tocsin::ingest

// Wakes a journal reader when something in the folder changes: inotify, or nothing where that does
// not work (then the reader looks every 50 ms).
#pragma once

#include <chrono>
#include <string>
#include <unordered_map>
#include <vector>

#include "ingest/journal_directory.h"

namespace tocsin::ingest {

class JournalWatch {
 public:
  /// Watches `directory` for new writers. Works with reduced means when inotify is exhausted.
  explicit JournalWatch(std::string directory);

  /// Also watch this writer's segments. False: not possible, look from time to time.
  bool add(const std::string& writer);
  void remove(const std::string& writer);

  struct Changes {
    bool writers = false;               // writers came or went
    bool lost = false;                  // the kernel's queue ran over: look at everything
    std::vector<std::string> appended;  // writers with new bytes
    std::vector<std::string> segments;  // writers whose list of segments changed
  };
  /// Waits at most `timeout` for a change, and returns all there are. The reference lives until
  /// the next call.
  const Changes& wait(std::chrono::milliseconds timeout);

 private:
  void read_events();

  std::string directory_;
  FileDescriptor inotify_;
  int root_ = -1;
  std::unordered_map<int, std::string> writers_;
  Changes changes_;
};

}  // namespace tocsin::ingest

// Waits until one of a journal's files may have changed: inotify on the write-ahead logs, or mere
// time where that does not work.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "ingest/journal/directory.h"

namespace tocsin::ingest {

class JournalWatch {
 public:
  enum class Wakeup { time_over, changed, woken };

  JournalWatch();
  /// Also watch this file. It need not exist yet.
  void add(std::string path);
  /// Does every change announce itself? Not where inotify does not work, nor of a file that is not
  /// there: then who waits has to look from time to time.
  [[nodiscard]] bool armed() const;
  /// Has a watched file changed since last asked? Also when its watch began since then: what was
  /// written just before was not seen.
  bool changed();
  /// Waits for a change of a watched file or wake(), for `longest` in the end. In its first `deaf`
  /// part changes do not count: a commit becomes visible a little after its bytes are written.
  Wakeup wait(std::chrono::nanoseconds deaf, std::chrono::nanoseconds longest);
  /// Ends a wait() that is under way, or else the next one. Thread-safe.
  void wake();

 private:
  struct File {
    std::string path;
    int watch = -1;
  };
  void arm();
  bool take_wake();

  FileDescriptor inotify_;
  FileDescriptor bell_;
  std::vector<File> files_;
  bool began_ = false;  // a watch began, see changed()
};

}  // namespace tocsin::ingest

// Keeps a store readable while nobody writes it.
#pragma once

#include <memory>
#include <string>

namespace tocsin::insights {

class StoreDatabase;

/// A reader needs the index of the write-ahead log, and the last connection to a store removes it. On a full
/// disk it could not be made again. While this lives, it stays. Not thread-safe.
class StoreHold {
 public:
  StoreHold();
  ~StoreHold();
  StoreHold(const StoreHold&) = delete;
  StoreHold& operator=(const StoreHold&) = delete;

  /// Of the file that is at `path` now. Does nothing if it has one, or if the file cannot be read.
  void take(const std::string& path);
  void let_go();

 private:
  std::unique_ptr<StoreDatabase> database_;
};

}  // namespace tocsin::insights

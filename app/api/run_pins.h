// Which runs are pinned, for whoever takes old runs out of a store.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>

#include "core/mutex.h"
#include "core/record.h"
#include "core/result.h"
#include "ingest/ingest.h"

namespace tocsin::app {

/// A store that begins anew meets an old run before the record that pins it: nothing is taken out before read()
/// has met all of these. Thread-safe.
class RunPins {
 public:
  /// Reads the topic of pins to its end, in place of what was known.
  core::Status read(ingest::Transport& transport, const std::stop_token& stop);
  /// Takes any record. One that is older than what is known of its run changes nothing.
  void saw(const core::RecordView& record);
  /// By uid; nullopt: they are not known yet.
  [[nodiscard]] std::optional<std::set<std::string>> pinned() const;

 private:
  struct Said {
    std::int64_t offset = -1;
    bool pinned = false;
  };
  static void take(const core::RecordView& record, std::map<std::string, Said>& into);

  mutable core::Mutex mutex_;
  std::map<std::string, Said> said_ GUARDED_BY(mutex_);  // by uid
  bool known_ GUARDED_BY(mutex_) = false;
};

}  // namespace tocsin::app

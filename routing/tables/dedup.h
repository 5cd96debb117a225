// Deduplication: an event counts once, however often it comes (docs/routing.md).
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "routing/routing.h"
#include "routing/tables/seen_index.h"
#include "routing/tables/seen_record.h"

namespace tocsin::routing {

/// The events of the last `window`, at most `most` of them, by a hash of (source, id). Those that
/// arrive between two take() are one record `seen/<when the first arrived>`, not one each.
class Dedup {
 public:
  Dedup(core::Duration window, std::uint64_t most);

  /// Has this event come before? It is remembered either way. Events without an id are all new.
  bool seen(std::string_view source, std::string_view event_id, core::WallTime now);
  /// Forgets what is older than the window.
  void forget(core::WallTime now);

  [[nodiscard]] std::size_t size() const noexcept { return index_.size(); }
  /// Forgotten within the window, because there were more than `most`.
  [[nodiscard]] std::uint64_t evicted() const noexcept { return evicted_; }

  /// Records in any order, then restored(), before which nothing is known. Also one record per event,
  /// as they once were: `seen/<hash>` with its time.
  core::Status restore(std::string_view key, std::string_view value);
  void restored();
  /// The records of what has changed, ascending.
  void take(std::vector<StateRecord>& out);
  void snapshot(std::vector<StateRecord>& out) const;

 private:
  struct Batch {
    std::string key;
    std::vector<SeenEvent> events;  // as they arrived
    std::size_t forgotten = 0;      // of the first ones
    std::uint64_t first = 0;        // number of the first one; they are numbered one by one
  };

  [[nodiscard]] const SeenEvent& event_of(std::uint32_t number) const;
  std::uint32_t& find_or_add(const SeenEvent& event, std::uint32_t fresh);
  void remember(const SeenEvent& event);
  void forget_first();

  core::Duration window_;
  std::uint64_t most_;
  SeenIndex index_;            // of the newest event of each hash, the lower half of its number
  std::deque<Batch> batches_;  // oldest first
  std::uint64_t next_ = 0;     // number of the next event
  std::size_t unwritten_ = 0;  // of the batches, the newest ones
  std::int64_t last_key_ = 0;
  std::vector<std::string> gone_;  // keys of batches to take back
  std::uint64_t evicted_ = 0;
};

}  // namespace tocsin::routing

// Deduplication: an event counts once, however often it comes (docs/routing.md).
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/issue.h"
#include "core/result.h"
#include "core/time.h"
#include "routing/routing.h"

namespace tocsin::routing {

/// The events of the last `window`, at most `most` of them, by a hash of (source, id). Those that
/// arrive between two take() are one record `seen/<when the first arrived>`, not one each.
class Dedup {
 public:
  Dedup(core::Duration window, std::uint64_t most);

  /// Has this event come before? It is remembered either way. Events without an id are all new.
  bool seen(const core::Issue& event, core::WallTime now);
  /// Forgets what is older than the window.
  void forget(core::WallTime now);

  [[nodiscard]] std::size_t size() const noexcept { return known_.size(); }
  /// Forgotten within the window, because there were more than `most`.
  [[nodiscard]] std::uint64_t evicted() const noexcept { return evicted_; }

  /// Records in any order, then restored(). Also one record per event, as they once were:
  /// `seen/<hash>` with its time.
  core::Status restore(std::string_view key, std::string_view value);
  void restored();
  /// The records of what has changed, ascending.
  void take(std::vector<StateRecord>& out);
  void snapshot(std::vector<StateRecord>& out) const;

 private:
  using Hash = std::array<std::uint8_t, 16>;  // of a SHA-256; base32 in records
  struct Spread {
    std::size_t operator()(const Hash& hash) const noexcept {
      std::size_t out = 0;
      std::memcpy(&out, hash.data(), sizeof out);
      return out;
    }
  };
  struct Event {
    Hash hash;
    core::WallTime at;
  };
  struct Batch {
    std::string key;
    std::vector<Event> events;  // as they arrived
    std::size_t forgotten = 0;  // of the first ones
  };

  static Hash hash_of(const core::Issue& event);
  static std::string encode(const Batch& batch);
  void remember(const Hash& hash, core::WallTime now);
  void forget_first();

  core::Duration window_;
  std::uint64_t most_;
  std::unordered_map<Hash, core::WallTime, Spread> known_;  // hash → newest arrival
  std::deque<Batch> batches_;                               // oldest first
  std::size_t unwritten_ = 0;                               // of these, the newest ones
  std::int64_t last_key_ = 0;
  std::vector<std::string> gone_;  // keys of batches to take back
  std::uint64_t evicted_ = 0;
};

}  // namespace tocsin::routing

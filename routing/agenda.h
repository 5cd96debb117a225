// What is due when: one entry per (kind, key), taken out in the order of time, then kind, then key.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "core/time.h"

namespace tocsin::routing {

/// Order matters where times are equal: an expiry at T is seen by the flush at T.
enum class Due { expire_issue, lose_run, flush_group, forget_group, forget_issue, forget_run };

class Agenda {
 public:
  struct Entry {
    core::WallTime at;
    Due kind;
    std::string key;
  };

  /// Replaces the entry of (kind, key).
  void set(Due kind, const std::string& key, core::WallTime at) {
    const auto [found, fresh] = times_.try_emplace({kind, key}, at);
    if (!fresh) {
      if (found->second == at) return;
      order_.erase({found->second, kind, key});
      found->second = at;
    }
    order_.insert({at, kind, key});
  }
  void cancel(Due kind, const std::string& key) {
    const auto found = times_.find({kind, key});
    if (found == times_.end()) return;
    order_.erase({found->second, kind, key});
    times_.erase(found);
  }
  [[nodiscard]] std::optional<core::WallTime> next() const {
    if (order_.empty()) return std::nullopt;
    return std::get<0>(*order_.begin());
  }
  /// Takes out the first entry due at or before `now`.
  std::optional<Entry> pop(core::WallTime now) {
    if (order_.empty() || std::get<0>(*order_.begin()) > now) return std::nullopt;
    auto [at, kind, key] = *order_.begin();
    cancel(kind, key);
    return Entry{at, kind, std::move(key)};
  }
  void clear() {
    times_.clear();
    order_.clear();
  }

 private:
  std::map<std::pair<Due, std::string>, core::WallTime> times_;
  std::set<std::tuple<core::WallTime, Due, std::string>> order_;
};

}  // namespace tocsin::routing

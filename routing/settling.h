// Targets of inhibit rules whose turn has come before the input was read up to it: they wait, for a
// while, for sources that are still to be read (docs/inhibition.md).
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/time.h"

namespace tocsin::routing {

/// Groups by hash. What is held is off the agenda.
class Settling {
 public:
  explicit Settling(core::Duration longest) : longest_(longest) {}

  /// All that was published before `at` has been read. Until this is first called, everything has.
  void set_read_until(core::WallTime at) { read_until_ = at; }
  /// Must a target whose turn was due at `due` still wait?
  [[nodiscard]] bool waits(core::WallTime due, core::WallTime now) const {
    return read_until_ < due && now < due + longest_;
  }
  void hold(const std::string& hash, core::WallTime due) { held_.emplace(hash, due + longest_); }
  /// Groups that were held, to be looked at again.
  [[nodiscard]] std::vector<std::string> release() {
    std::vector<std::string> out;
    for (auto& [hash, end] : std::exchange(held_, {})) out.push_back(hash);
    return out;
  }
  /// When the first of them waits no longer.
  [[nodiscard]] std::optional<core::WallTime> next() const {
    const auto sooner = [](const auto& a, const auto& b) { return a.second < b.second; };
    const auto first = std::min_element(held_.begin(), held_.end(), sooner);
    return first == held_.end() ? std::nullopt : std::optional(first->second);
  }

 private:
  core::Duration longest_;
  core::WallTime read_until_ = core::WallTime::max();
  std::map<std::string, core::WallTime> held_;  // until when at the latest
};

}  // namespace tocsin::routing

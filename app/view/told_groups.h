// Which issues the messages of a group have told: the outbox, folded.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>

#include "core/record.h"
#include "core/result.h"

namespace tocsin::app {

/// The newest groups, bounded.
class ToldGroups {
 public:
  static constexpr std::size_t kMostGroups = 20'000;
  static constexpr std::size_t kMostMessages = 50'000;
  static constexpr std::size_t kMostIssues = 1'000;  // of one group

  /// A record of `router-outbox`; any other is left alone.
  void apply(const core::RecordView& record);
  void clear();

  /// The hash of the one group whose hash, or an id of whose messages, begins with `what`; empty:
  /// there is none. failed_precondition: there are several.
  [[nodiscard]] core::Result<std::string> group_of(std::string_view what) const;
  /// Keys of the issues that it was told of; empty: no such group.
  [[nodiscard]] const std::map<std::string, std::uint64_t>& issues_of(
      const std::string& group) const;  // with their newest episodes
  /// Of its newest incident; 0: no such group.
  [[nodiscard]] std::uint64_t generation_of(const std::string& group) const;

 private:
  struct Told {
    std::map<std::string, std::uint64_t> issues;
    std::uint64_t generation = 0;
  };
  std::map<std::string, Told, std::less<>> groups_;           // by hash
  std::deque<std::string> order_;                             // of hashes
  std::map<std::string, std::string, std::less<>> group_of_;  // by id of a message
  std::deque<std::string> messages_;
};

}  // namespace tocsin::app

// What a button or a link in a message is about, and where messages carry them (docs/acknowledge.md).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/notification.h"
#include "core/result.h"
#include "core/time.h"

namespace tocsin::actions {

/// One thing that somebody may do from a message. As text it has at most 160 of the characters
/// a-z, 0-9, '-' and '_', and no secret.
struct AnswerTarget {
  enum class Purpose : std::uint8_t { acknowledge, silence, approve_stop, cancel_stop };
  static constexpr std::size_t kGroupDigits = 16;

  Purpose purpose = Purpose::acknowledge;
  std::string group;             // first 16 digits of the group's hash
  std::uint64_t generation = 1;  // of its incident
  std::string issue_key;         // of the issue that the message is named for
  std::uint64_t episode = 1;     // of that issue
  std::string stop;  // cmd_…; only of a word on a stop, which has nothing of the above
  std::optional<core::WallTime> until;  // whole seconds; nullopt: as long as the episode fires

  [[nodiscard]] std::string text() const;
  static std::optional<AnswerTarget> parse(std::string_view text);
  friend bool operator==(const AnswerTarget&, const AnswerTarget&) = default;
};

/// Acknowledge or silence what this message tells; nullopt: nothing of it fires.
std::optional<AnswerTarget> answer_target(const core::Notification& notification,
                                          AnswerTarget::Purpose purpose);
/// For how long a button or a link silences.
inline constexpr core::Duration kAnswerSilence = std::chrono::hours(1);
/// What it silences: labels with their values that an issue must all have. The whole run of this one, as
/// the command in a message does; else its rule in its job, node and instance. Empty: it has none of them.
std::vector<std::pair<std::string, std::string>> silenced_labels(const core::Issue& issue);
/// The same in words: "all of run 0190… (digits)", "rule disk_full on node a17".
std::string silenced_words(const core::Issue& issue);

/// Links in messages by which one acts without signing in.
struct AnswerLinks {
  core::Duration lifetime{};
  /// The signature of such a text: 32 of a-z and 2-7. Called from delivery threads.
  std::function<core::Result<std::string>(std::string_view text)> sign;
};

/// What the identifiers of Slack's buttons begin with.
inline constexpr std::string_view kSlackButtons = "tocsin";

/// What messages of this server may carry.
struct AnswerWays {
  struct Buttons {
    bool stops = false;  // somebody may say a word on a stop
  };
  std::map<std::string, Buttons> buttons;  // by integration: its tool reports clicks to us
  std::optional<AnswerLinks> links = {};
};

}  // namespace tocsin::actions

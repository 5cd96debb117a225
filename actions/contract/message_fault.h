// Whether it is the message that the far side cannot take: it fails, and others arrive meanwhile.
// Internal to actions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/action.h"
#include "core/replay.h"

namespace tocsin::actions {

/// What one undelivered message knows of its own failures. A failure counts as the message's own
/// when another message has arrived since the failure before it.
class MessageFault {
 public:
  /// Own failures after which the short form is sent: length or content may be the cause.
  static constexpr std::uint32_t kShortAfter = 4;
  /// Own failures after which it is parked: people are told, and it is tried seldom.
  static constexpr std::uint32_t kParkAfter = 8;

  MessageFault() = default;
  /// As a record says it.
  explicit MessageFault(std::uint32_t own) : own_(own), known_(own > 0) {}

  /// An attempt failed; `arrived`: messages that have arrived in this lane so far.
  void failed(std::uint64_t arrived) {
    if (known_ && arrived > seen_) ++own_;
    known_ = true;
    seen_ = arrived;
  }
  /// What takes the place of a message takes its failures over.
  void inherit(const MessageFault& older) {
    if (older.own_ >= own_) *this = older;
  }

  /// Own failures so far.
  [[nodiscard]] std::uint32_t own() const noexcept { return own_; }
  [[nodiscard]] bool alone() const noexcept { return own_ > 0; }
  /// So sure that its failures say nothing of the far side.
  [[nodiscard]] bool proven() const noexcept { return own_ >= kShortAfter; }
  [[nodiscard]] bool parked() const noexcept { return own_ >= kParkAfter; }

 private:
  std::uint32_t own_ = 0;
  bool known_ = false;  // it has failed
  std::uint64_t seen_ = 0;
};

/// What records of deliveries keep for a restart, beside the names of the far side.
namespace kept {
inline constexpr std::string_view kOwnFailures = "own_failures";  // MessageFault::own
/// Whose fault a failure was, where it was not the far side's: message, recipient, held.
inline constexpr std::string_view kFault = "fault";
inline constexpr std::string_view kSupersededBy = "superseded_by";
inline constexpr std::string_view kDigest = "digest";
/// Recipients that get this message by deliveries of their own, and those that were refused for good:
/// "<address> <code>", joined by add(), as a record has each name once.
inline constexpr std::string_view kPutOff = "put_off";
inline constexpr std::string_view kRefused = "refused";
/// The request of a person by which it is sent again.
inline constexpr std::string_view kReplay = core::kReplayHandle;
/// In a notification: the only recipient of this delivery; one that has a delivery of its own.
inline constexpr std::string_view kOnlyTo = "only_to";
inline constexpr std::string_view kNotTo = "not_to";
}  // namespace kept

using HandleList = std::vector<std::pair<std::string, std::string>>;

/// Adds a value to those of that name.
void add(HandleList& handles, std::string_view name, const std::string& value);
/// What add() has put together.
std::vector<std::string> values_of(const HandleList& handles, std::string_view name);
/// The first value of that name; empty: none.
std::string_view value_of(const HandleList& handles, std::string_view name);
/// Without what only records keep: what the far side calls the incident.
HandleList far_side_names(const HandleList& handles);

}  // namespace tocsin::actions

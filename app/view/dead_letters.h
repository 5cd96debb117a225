// Notifications that were given up, folded from `router-deadletter` and the log of deliveries.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/notification.h"
#include "core/record.h"
#include "core/time.h"
#include "core/value.h"

namespace tocsin::app {

struct LetterEvent {
  core::WallTime at{};
  std::string what;  // dead, expired, replay, discard
  std::string by;    // of what a person did
  std::string note;
  std::string detail;  // of an end: class, code and detail
  std::string replay;
};

struct DeadLetter {
  core::Notification notification;  // its issues still packed
  std::vector<LetterEvent> events;  // oldest first
  std::string replayed_to;          // the final state of its last replay; empty: none has ended

  /// dead, expired: somebody should look. replaying: sent again, not ended. delivered and other ends
  /// of a replay, discarded: nobody need look.
  [[nodiscard]] std::string stand() const;
  [[nodiscard]] bool open() const { return stand() == "dead" || stand() == "expired"; }
  [[nodiscard]] core::WallTime died() const;
};

class DeadLetters {
 public:
  /// Of `router-deadletter` and `router-deliveries`, in the order of its partition.
  void apply(const core::RecordView& record);
  /// By notification id.
  [[nodiscard]] const std::map<std::string, DeadLetter>& letters() const { return letters_; }
  /// After the last record: what became of replays.
  void close();

 private:
  std::map<std::string, DeadLetter> letters_;
  std::map<std::string, std::string> replays_;  // id → final state
};

std::string letter_text(const DeadLetter& letter);
core::Value letter_value(const DeadLetter& letter, bool whole);

}  // namespace tocsin::app

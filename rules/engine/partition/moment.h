// What an engine was told last: the newest record, and the time.
#pragma once

#include <cstdint>
#include <string>

#include "core/time.h"
#include "rules/engine/partition/turn.h"
#include "rules/rules.h"

namespace tocsin::rules {

class Moment {
 public:
  Moment() = default;
  Moment(const Moment&) = delete;  // the record's topic is its own
  Moment& operator=(const Moment&) = delete;

  void move_to(core::WallTime now) noexcept { now_ = evaluated_at_ = core::nanoseconds(now); }
  /// `arrival`: now. `record_time`: the engine's clock is the record's.
  void move_to(const RecordRef& record, core::WallTime arrival, bool record_time) {
    if (topic_ != record.topic) topic_ = record.topic;
    record_ = record;
    record_.topic = topic_;
    record_.stream = {};  // nobody asks for it
    evaluated_at_ = core::nanoseconds(arrival);
    now_ = record_time ? core::nanoseconds(record.timestamp) : evaluated_at_;
  }
  /// What the partition handles now.
  [[nodiscard]] Turn turn(PartitionState& part) const noexcept {
    return {part, record_, now_, evaluated_at_};
  }

 private:
  std::string topic_;
  RecordRef record_;
  std::int64_t now_ = 0;
  std::int64_t evaluated_at_ = 0;
};

}  // namespace tocsin::rules

// An engine behind a topic of state and transactions, in memory: what is committed survives a kill,
// what is not does not.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/rules/stories.h"

namespace tocsin::rules::stories {

/// Of what was told, the issues.
inline std::vector<std::string> issues_of(const std::vector<std::string>& told) {
  std::vector<std::string> out;
  std::copy_if(told.begin(), told.end(), std::back_inserter(out),
               [](const std::string& line) { return line.starts_with("iss_"); });
  return out;
}

class StateTopic {
 public:
  explicit StateTopic(const std::string& rules, EngineOptions options = {})
      : StateTopic(read_rules_text(rules).config, std::move(options)) {}
  explicit StateTopic(RulesConfig rules, EngineOptions options = {})
      : rules_(std::move(rules)), options_(std::move(options)) {
    restart();
  }

  /// The process dies: everything that was not committed is gone; a new one restores and replays.
  void restart() {
    broken_ = true;
    pending_events_.clear();
    pending_state_.clear();
    more_ = false;
    harness_ = std::make_unique<RuleHarness>(rules_, options_);
    for (const auto& [key, value] : state_) {
      ASSERT_TRUE(engine().restore(3, key, value).has_value());
    }
    std::vector<core::Position> committed;
    if (committed_) committed.push_back({{"telemetry", 3}, *committed_});
    const auto restored = engine().finish_restore(3, committed);
    ASSERT_TRUE(restored.has_value()) << restored.error().message;
    std::int64_t from = committed_.value_or(0);
    if (restored->positions) {
      from = 0;
      for (const core::Position& position : *restored->positions) from = position.next;
    }
    ASSERT_LE(from, committed_.value_or(0));
    for (std::int64_t at = from; at < committed_.value_or(0); ++at) {
      harness_->feed_at(frames_[static_cast<std::size_t>(at)], at);
      ASSERT_TRUE(engine().pending().empty()) << "a silent partition spoke";
    }
    engine().go_live(3, core::wall_time(kForever_));
    next_ = committed_.value_or(0);
    gather();
    broken_ = false;
  }

  /// Its configuration was changed while nothing ran.
  void restart_with(const std::string& rules) {
    rules_ = read_rules_text(rules).config;
    restart();
  }

  void feed(const OwnedFrame& frame) {
    if (next_ == static_cast<std::int64_t>(frames_.size())) frames_.push_back(frame);
    harness_->feed_at(frame, next_++);
    gather();
  }
  void tick(std::int64_t now) {
    harness_->tick(now);
    gather();
  }
  /// Something of a run in another partition.
  void learn(const Comparison& record, std::int64_t now) {
    engine().learn(3, record, core::wall_time(now));
    gather();
  }
  /// The configuration changes while the process lives; after a kill it is read as it is then.
  void reload(const std::string& rules) {
    rules_ = read_rules_text(rules).config;
    ASSERT_TRUE(engine().reload(rules_, core::wall_time(kStart)));
    gather();
  }
  /// A piece of a snapshot goes into the open transaction. True: more is due.
  bool piece(std::size_t budget) {
    more_ = engine().snapshot(3, budget, [&](StateRecord record) {
      largest_ = std::max(largest_, record.value ? record.value->size() : 0);
      pending_state_.push_back(std::move(record));
    });
    return more_;
  }
  void commit() {
    for (StateRecord& record : pending_state_) {
      if (record.value) {
        state_[record.key] = std::move(*record.value);
      } else {
        state_.erase(record.key);
      }
    }
    pending_state_.clear();
    for (std::string& event : pending_events_) told_.push_back(std::move(event));
    pending_events_.clear();
    committed_ = next_;
  }

  /// The last restart failed. A property asks here: a failure of the whole test stays, and every smaller
  /// case would look as if it had failed too.
  [[nodiscard]] bool broken() const { return broken_; }
  [[nodiscard]] Engine& engine() { return harness_->engine(); }
  [[nodiscard]] std::int64_t next() const { return next_; }  // offset of the next frame
  [[nodiscard]] const std::vector<std::string>& told() const { return told_; }
  [[nodiscard]] std::map<std::string, std::string>& state() { return state_; }
  [[nodiscard]] std::size_t largest() const { return largest_; }  // state record so far
  [[nodiscard]] std::size_t bytes() const {
    std::size_t sum = 0;
    for (const auto& [key, value] : state_) sum += key.size() + value.size();
    return sum;
  }

 private:
  static constexpr std::int64_t kForever_ = INT64_MAX;

  void gather() {
    Output output = engine().take(3);
    for (const Event& event : output.events) pending_events_.push_back(text(event));
    for (StateRecord& record : output.log) pending_state_.push_back(std::move(record));
  }

  RulesConfig rules_;
  EngineOptions options_;
  std::unique_ptr<RuleHarness> harness_;
  std::vector<OwnedFrame> frames_;  // the input, as far as it was read
  std::map<std::string, std::string> state_;
  std::optional<std::int64_t> committed_;
  std::int64_t next_ = 0;
  std::vector<std::string> told_;
  std::vector<std::string> pending_events_;
  std::vector<StateRecord> pending_state_;
  bool more_ = false;
  bool broken_ = false;
  std::size_t largest_ = 0;
};

}  // namespace tocsin::rules::stories

#include "app/stages/answers.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "app/view/events_log.h"
#include "core/topics.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

constexpr std::string_view kSlot = "capture/";
constexpr std::size_t kMostTold = 10'000;
constexpr std::array<std::string_view, 4> kPhases{"received", "applied", "ended", "refused"};

// The hook names four; a label of metrics has no more than these and one for the rest.
std::string_view phase_label(std::string_view phase) {
  for (const std::string_view one : kPhases) {
    if (one == phase) return one;
  }
  return "other";
}

}  // namespace

AnswersStage::AnswersStage(std::set<std::string> askers, core::Log& log, core::Telemetry& telemetry)
    : askers_(std::move(askers)), log_(log), telemetry_(telemetry) {
  wiring_.name = "answers";
  wiring_.part = "rules";
  wiring_.topics = {core::topic::kAcks};
  wiring_.fetch_wait = std::chrono::milliseconds(100);  // what comes ends it at once
  wiring_.writes = false;
}

core::Status AnswersStage::open(const Instant& now) {
  inputs_.clear();
  caught_up_ = false;
  if (opened_ == core::WallTime{}) opened_ = now.wall;
  return core::ok();
}

void AnswersStage::started(std::int32_t partition, const Instant& /*now*/) {
  inputs_.insert(partition);
}

std::optional<core::Duration> AnswersStage::tick(const StageTick& tick) {
  caught_up_ = caught_up_ ||
               (!inputs_.empty() && std::all_of(inputs_.begin(), inputs_.end(),
                                                [&](std::int32_t one) { return tick.live(one); }));
  return std::nullopt;
}

std::optional<Refusal> AnswersStage::handle(const core::RecordView& record,
                                            const StageContext& /*context*/) {
  const auto [seen, first] =
      seen_.try_emplace({std::string(record.stream), record.partition}, record.offset);
  if (!first && record.offset <= seen->second) return std::nullopt;
  seen->second = record.offset;
  if (record.tombstone) return std::nullopt;
  const auto ack = ingest::decode_ack(record);
  if (!ack) return Refusal{"bad_ack", ack.error().message};
  if (!std::string_view(ack->action).starts_with(kSlot)) return std::nullopt;
  const std::string asker = ack->action.substr(kSlot.size());
  if (!askers_.contains(asker) || (!caught_up_ && ack->time < opened_)) return std::nullopt;
  telemetry_
      .counter("tocsin_rules_capture_answers_total",
               "what hooks answered to a rule that asks for captures itself",
               {{"asker", asker}, {"phase", phase_label(ack->phase)}})
      .add();
  if (ack->phase == kPhases[0]) return std::nullopt;
  if (told_.size() >= kMostTold) told_.clear();
  const bool fresh = told_
                         .insert(ack->command_id + "/" + std::to_string(ack->revision) + "/" +
                                 ack->phase + "/" + ack->reason)
                         .second;
  if (fresh) log_capture_answer(log_, *ack);
  return std::nullopt;
}

StageOutput AnswersStage::take(const Instant& /*now*/) { return {}; }

}  // namespace tocsin::app

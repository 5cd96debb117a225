#include "app/stages/runs.h"

#include <algorithm>
#include <utility>

#include "core/fields/stop_request.h"
#include "core/topics.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

constexpr std::int32_t kWordsPartition = 0;  // the partition of all words

}  // namespace

RunsStage::RunsStage(RunBoard& board, actions::StopLedger& ledger,
                     actions::StopApprovals& approvals, actions::ProfileLedger& profiles,
                     std::string cluster, std::function<bool()> leads)
    : board_(board),
      ledger_(ledger),
      approvals_(approvals),
      profiles_(profiles),
      cluster_(std::move(cluster)),
      source_("/" + cluster_ + "/router"),
      leads_(std::move(leads)),
      muster_([this](const core::RunUid& run) { return board_.find(run); }) {
  wiring_.name = "runs";
  wiring_.part = "router";
  wiring_.topics = {core::topic::kRegistry, core::topic::kCommands, core::topic::kAcks,
                    core::topic::kRouterControl};
  wiring_.fetch_wait = std::chrono::milliseconds(100);  // what comes ends it at once
  wiring_.writer = "runs";
}

core::Status RunsStage::open(const Instant& /*now*/) {
  inputs_.clear();
  again_.clear();
  // Nobody knows what became of them: the topic says it.
  for (const core::Command& one : allowed_) ledger_.release(one);
  allowed_.clear();
  words_.clear();
  agents_.start_over();
  taken_ = begun_ = 0;
  board_.set_complete(false);
  return core::ok();
}

void RunsStage::started(std::int32_t partition, const Instant& /*now*/) {
  inputs_.insert(partition);
}

std::optional<Refusal> RunsStage::handle(const core::RecordView& record,
                                         const StageContext& context) {
  if (record.topic == core::topic::kCommands) {
    const auto decoded = ingest::decode_command(record);
    if (!decoded) return Refusal{"bad_command", decoded.error().message};
    agents_.saw(record, *decoded);
    if (decoded->command) {
      ledger_.on_command(*decoded->command);
      profiles_.on_command(*decoded->command);
      if (steering_ != nullptr) steering_->on_command(*decoded->command);
      muster_.on_command(*decoded->command, context.now.wall);
    } else if (decoded->action == "stop") {
      ledger_.on_withdrawn(decoded->run);
      muster_.on_withdrawn(decoded->run);
    }
    return std::nullopt;
  }
  if (record.topic == core::topic::kRouterControl) return note_request(record);
  if (record.topic == core::topic::kAcks) {
    const auto ack = ingest::decode_ack(record);
    if (!ack) return Refusal{"bad_ack", ack.error().message};
    muster_.on_ack(*ack);
    if (steering_ != nullptr) steering_->on_ack(*ack);
    ask_again(*ack, context.now.wall);
    return std::nullopt;
  }
  if (record.tombstone) return std::nullopt;
  const auto decoded = ingest::decode_event(record);
  if (!decoded) return Refusal{"bad_event", decoded.error().message};
  if (const auto* job = std::get_if<core::JobEvent>(&decoded->event)) {
    board_.note(*job);
    // What was there before we knew everything was written by somebody who saw it.
    if (board_.complete() && leads_()) {
      if (auto command = ledger_.resend(*job, context.now.wall)) {
        again_.push_back(std::move(*command));
      }
    }
  }
  return std::nullopt;
}

// Other kinds of records are the router's, which also says what is wrong with one.
std::optional<Refusal> RunsStage::note_request(const core::RecordView& record) {
  const std::string prefix = std::string(core::kApprovalPrefix) + "/";
  const std::string key(record.key.value_or(""));
  if (!key.starts_with(prefix)) return std::nullopt;
  const std::string id = key.substr(prefix.size());
  if (record.tombstone) {
    approvals_.on_record(id, std::nullopt);
  } else if (auto request = core::read_stop_request(record.text()); request && request->id == id) {
    approvals_.on_record(id, std::move(*request));
  }
  return std::nullopt;
}

void RunsStage::follow_words(core::WallTime now, core::WallTime heard) {
  auto due = approvals_.due(
      ledger_, [this](const core::RunUid& run) { return board_.find(run); }, cluster_, now, firing_,
      heard);
  for (const auto& request : due.decided) words_.push_back(core::stop_request_record(request));
  for (const auto& issue : due.issues) words_.push_back(ingest::encode_issue(issue));
  for (auto& command : due.commands) allowed_.push_back(std::move(command));
}

void RunsStage::committed(const Instant& /*now*/) {
  allowed_.erase(allowed_.begin(), allowed_.begin() + static_cast<std::ptrdiff_t>(begun_));
  taken_ -= begun_;
  begun_ = 0;
}

// A rank had passed the first step of a trace when it heard of it.
void RunsStage::ask_again(const core::Ack& ack, core::WallTime now) {
  if (!board_.complete() || !leads_()) return;
  const auto current = board_.find(ack.run);
  if (!current) return;
  if (auto later = profiles_.on_ack(ack, *current, now)) again_.push_back(*std::move(later));
}

// Ranks that opened since, or had passed the common step of an adjustment.
void RunsStage::steer_again(core::WallTime now) {
  if (steering_ == nullptr) return;
  auto due = steering_->due([this](const core::RunUid& run) { return board_.find(run); }, now);
  for (core::Command& later : due) again_.push_back(std::move(later));
}

StageOutput RunsStage::take(const Instant& /*now*/) {
  StageOutput out;
  for (const auto& command : again_) {
    out.records.push_back({0, ingest::encode_command(command, source_)});
  }
  again_.clear();
  for (; taken_ < allowed_.size(); ++taken_) {
    out.records.push_back({0, ingest::encode_command(allowed_[taken_], source_)});
  }
  for (auto& record : words_) out.records.push_back({0, std::move(record)});
  words_.clear();
  return out;
}

std::optional<core::Duration> RunsStage::tick(const StageTick& tick) {
  // Once complete, always complete: what is late by a moment is caught by the fence at the hook.
  if (!board_.complete() && !inputs_.empty()) {
    board_.set_complete(std::all_of(inputs_.begin(), inputs_.end(),
                                    [&](std::int32_t one) { return tick.live(one); }));
  }
  if (board_.complete() && leads_()) {
    const auto read = tick.read_until(kWordsPartition).value_or(core::Duration::zero());
    follow_words(tick.now.wall, tick.now.wall - (tick.now.steady - read));
    steer_again(tick.now.wall);
    for (auto& record : agents_.due(tick.now.wall, source_)) words_.push_back(std::move(record));
    for (auto& later : muster_.due(tick.now.wall)) {
      if (auto command = ledger_.put_off(std::move(later))) again_.push_back(*std::move(command));
    }
  }
  return std::nullopt;
}

}  // namespace tocsin::app

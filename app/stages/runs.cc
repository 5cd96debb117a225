#include "app/stages/runs.h"

#include <algorithm>

#include "ingest/ingest.h"

namespace tocsin::app {

RunsStage::RunsStage(RunBoard& board, actions::StopLedger& ledger)
    : board_(board), ledger_(ledger) {
  wiring_.name = "runs";
  wiring_.part = "router";
  wiring_.topics = {"registry", "commands"};
  wiring_.writes = false;
}

core::Status RunsStage::open(const Instant& /*now*/) {
  inputs_.clear();
  board_.set_complete(false);
  return core::ok();
}

void RunsStage::started(std::int32_t partition, const Instant& /*now*/) {
  inputs_.insert(partition);
}

std::optional<Refusal> RunsStage::handle(const core::RecordView& record,
                                         const StageContext& /*context*/) {
  if (record.topic == "commands") {
    const auto decoded = ingest::decode_command(record);
    if (!decoded) return Refusal{"bad_command", decoded.error().message};
    if (decoded->command) ledger_.on_command(*decoded->command);
    return std::nullopt;
  }
  if (record.tombstone) return std::nullopt;
  const auto decoded = ingest::decode_event(record);
  if (!decoded) return Refusal{"bad_event", decoded.error().message};
  if (const auto* job = std::get_if<core::JobEvent>(&decoded->event)) board_.note(*job);
  return std::nullopt;
}

std::optional<core::Duration> RunsStage::tick(const StageTick& tick) {
  // Once complete, always complete: what is late by a moment is caught by the fence at the hook.
  if (!board_.complete() && !inputs_.empty()) {
    board_.set_complete(std::all_of(inputs_.begin(), inputs_.end(),
                                    [&](std::int32_t one) { return tick.live(one); }));
  }
  return std::nullopt;
}

}  // namespace tocsin::app

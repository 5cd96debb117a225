#include "app/loop/loop_input.h"

#include <algorithm>

namespace tocsin::app {
namespace {

constexpr core::Duration kProof = std::chrono::seconds(3);  // of reading without a failure
constexpr std::chrono::milliseconds kLeaving = std::chrono::seconds(2);

}  // namespace

void LoopInput::open(std::unique_ptr<core::RecordSource> source) {
  source_.set(std::move(source));
  opened_ = clock_.monotonic();
}

void LoopInput::close() {
  if (const auto gone = source_.take()) gone->close(kLeaving);
  polled_ = false;
  backoff_ = {};
}

PollOutcome LoopInput::poll(std::chrono::milliseconds wait, std::size_t batch,
                            core::RecordHandler handle) {
  std::vector<core::Position> before = source_->positions();
  const auto polled = source_->poll(wait, batch, handle);
  if (!polled) return judge_failure(polled.error(), std::move(before));
  backoff_ = {};
  polled_ = true;
  damaged_ = false;
  // An empty answer proves nothing at once: the journal looks behind its position once a second.
  return {PollOutcome::Kind::read, *polled > 0 || clock_.monotonic() - opened_ >= kProof};
}

PollOutcome LoopInput::judge_failure(const core::Error& error, std::vector<core::Position> before) {
  PollOutcome out{PollOutcome::Kind::failing, false, error};
  if (error.code == core::Code::failed_precondition) {
    out.kind = PollOutcome::Kind::fenced;
    return out;
  }
  log_.warn("source_failed", {{"stage", stage_},
                              {"code", std::string(core::to_string(error.code))},
                              {"error", error.message}});
  if (error.code == core::Code::data_loss) {
    // Nothing was handed out in that poll.
    std::vector<core::Position> now = source_->positions();
    // A gap is passed. A damaged file stays damaged, and nothing behind the damage is read.
    if (now != before || !std::exchange(damaged_, true)) {
      out.kind = PollOutcome::Kind::gap;
      out.before = std::move(before);
      out.now = std::move(now);
      return out;
    }
  }
  grow_backoff();
  return out;
}

}  // namespace tocsin::app

#include "app/run_board.h"

namespace tocsin::app {

void RunBoard::note(const core::JobEvent& event) {
  const std::lock_guard lock(mutex_);
  Known& known = runs_[event.run.uid];
  if (event.run.attempt < known.run.attempt) return;
  if (event.run.attempt > known.run.attempt) known = {};
  if (event.time < known.time) return;
  known.time = event.time;
  known.run.attempt = event.run.attempt;
  known.run.ended = known.run.ended || event.phase == core::JobPhase::ended;
  if (!event.launch.empty()) known.run.launch = event.launch;
  if (event.world_size > 0) known.run.world_size = event.world_size;
  if (event.step) {
    known.run.step = event.step;
    known.run.step_at = event.time;
  }
  if (event.step_seconds) {
    known.run.step_seconds = event.step_seconds;
    ++known.run.paces;
  }
}

void RunBoard::note_attempt(const core::RunUid& run, std::uint32_t attempt) {
  const std::lock_guard lock(mutex_);
  Known& known = runs_[run];
  if (attempt <= known.run.attempt) return;
  known = {};
  known.run.attempt = attempt;
}

std::optional<actions::CurrentRun> RunBoard::find(const core::RunUid& run) const {
  const std::lock_guard lock(mutex_);
  const auto found = runs_.find(run);
  return found == runs_.end() ? std::nullopt : std::optional(found->second.run);
}

}  // namespace tocsin::app

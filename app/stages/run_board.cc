#include "app/stages/run_board.h"

namespace tocsin::app {
namespace {

// Every event comes twice, in `issues` and in `registry`, and of a run that ranks join several come at
// once: another pace is told where the run has gone on.
constexpr std::int64_t kFurther = 4;  // steps
constexpr auto kLater = std::chrono::seconds(1);
// Whose processes died with their machine never says that it has ended.
constexpr auto kHeardOf = std::chrono::minutes(15);

}  // namespace

void RunBoard::note(const core::JobEvent& event) {
  const core::MutexLock lock(mutex_);
  Known& known = runs_[event.run.uid];
  if (event.run.attempt < known.run.attempt) return;
  if (event.run.attempt > known.run.attempt) known = {};
  if (event.time < known.time) return;
  known.time = event.time;
  known.run.attempt = event.run.attempt;
  known.run.ended = known.run.ended || event.phase == core::JobPhase::ended;
  known.about = {event.run, event.labels};
  if (!event.launch.empty()) known.run.launch = event.launch;
  if (event.world_size > 0) known.run.world_size = event.world_size;
  if (event.step) {
    known.run.step = event.step;
    known.run.step_at = event.time;
  }
  if (event.step_seconds) {
    known.run.step_seconds = event.step_seconds;
    const bool further = event.step.value_or(0) >= known.paced_step + kFurther;
    if (known.run.paces == 0 || further || event.time >= known.paced_at + kLater) {
      ++known.run.paces;
      known.paced_at = event.time;
      known.paced_step = event.step.value_or(0);
    }
  }
}

void RunBoard::note_attempt(const core::RunUid& run, std::uint32_t attempt) {
  const core::MutexLock lock(mutex_);
  Known& known = runs_[run];
  if (attempt <= known.run.attempt) return;
  known = {};
  known.run.attempt = attempt;
}

std::optional<core::CurrentRun> RunBoard::find(const core::RunUid& run) const {
  const core::MutexLock lock(mutex_);
  const auto found = runs_.find(run);
  return found == runs_.end() ? std::nullopt : std::optional(found->second.run);
}

std::string RunBoard::job_of(const core::RunUid& run) const {
  const core::MutexLock lock(mutex_);
  const auto found = runs_.find(run);
  return found == runs_.end() ? std::string() : found->second.about.run.job;
}

std::vector<core::RunningRun> RunBoard::running(core::WallTime now) const {
  std::vector<core::RunningRun> out;
  const core::MutexLock lock(mutex_);
  for (const auto& [uid, known] : runs_) {
    if (known.run.ended || known.about.run.uid.nil() || now - known.time > kHeardOf) continue;
    out.push_back(known.about);
  }
  return out;
}

}  // namespace tocsin::app

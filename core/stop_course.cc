#include "core/stop_course.h"

#include <algorithm>
#include <string_view>

#include "core/value.h"

namespace tocsin::core {
namespace {

enum Said : unsigned { kHeard = 1, kAccepted = 2, kStopped = 4, kRefused = 8 };

/// Ranks that are counted; what further ones say still moves the state.
constexpr std::uint32_t kMaxRanks = 1U << 16;

unsigned said_of(char c) {
  return c >= 'a' ? static_cast<unsigned>(c - 'a') + 10 : static_cast<unsigned>(c - '0');
}
char digit_of(unsigned said) { return "0123456789abcdef"[said & 0xFU]; }

/// False: the rank had said that before, or is one too many.
bool mark(StopCourse& stop, std::uint32_t rank, unsigned said, unsigned taken_back) {
  if (rank >= kMaxRanks) return false;
  if (stop.ranks.size() <= rank) stop.ranks.resize(rank + 1, '0');
  char& known = stop.ranks[rank];
  const char now = digit_of((said_of(known) | said) & ~taken_back);
  if (now == known) return false;
  known = now;
  return true;
}

std::uint32_t ranks_that(const StopCourse& stop, Said said) {
  return static_cast<std::uint32_t>(
      std::count_if(stop.ranks.begin(), stop.ranks.end(),
                    [&](char known) { return (said_of(known) & said) != 0; }));
}

void count_all(StopCourse& stop) {
  StopAnswers& answers = stop.told.answers;
  answers.heard = ranks_that(stop, kHeard);
  answers.accepted = ranks_that(stop, kAccepted);
  answers.stopped = ranks_that(stop, kStopped);
  answers.refused = ranks_that(stop, kRefused);
}

bool saves(std::string_view phase) { return phase.starts_with("checkpoint"); }

void note_checkpoint(StopTold& told, const Ack& ack) {
  if (ack.phase == "checkpoint_failed") {
    told.checkpoint_failure = ack.reason.empty() ? "not said" : ack.reason;
    return;
  }
  if (ack.checkpoint_path.empty()) return;
  // Several ranks may save their parts: the lowest one speaks for all, and answers come in any order.
  const bool first = !told.checkpoint || ack.rank == 0;
  if (first)
    told.checkpoint = Checkpoint{ack.checkpoint_path, ack.node, ack.checkpoint_bytes, ack.step};
}

/// As far as the answers say; an end of the run is note_end()'s.
void move_on(StopTold& told, const Ack& ack) {
  if (told.state == "stopped") return;
  if (ack.phase == "stopped") {
    const std::uint32_t all = std::max<std::uint32_t>(told.answers.asked, 1);
    if (told.answers.stopped >= all) told.state = "stopped";
  } else if (ack.phase == "checkpointing") {
    told.state = "checkpointing";
  } else if (ack.phase == "refused") {
    if (told.answers.accepted > 0) return;
    told.state = "refused";
    told.reason = ack.reason;
  } else if (ack.phase != "received" && told.state != "checkpointing") {
    told.state = "cooperative";
  }
}

/// A rung of the platform that runs the job, and what came of it: no rank says so.
bool note_platform(StopTold& told, const Ack& ack) {
  if (told.state == "stopped" || told.state == ack.phase) return false;
  told.state = ack.phase;
  told.reason = ack.reason;
  return true;
}

}  // namespace

void note(StopCourse& stop, const Command& command) {
  if (stop.told.command_id != command.command_id) stop = {};
  StopTold& told = stop.told;
  told.command_id = command.command_id;
  told.requested_by = command.requested_by;
  told.rule = command.reason.rule;
  told.mode = text_at(command.args, "mode");
  // Asked anew; the command that was refused may be read behind its answers.
  const bool again = told.state == "refused" && command.revision > stop.refused_revision;
  if (told.state.empty() || again) told.state = "requested";
  if (told.reason.empty() || again) told.reason = command.reason.summary;
  if (told.requested_at == WallTime{}) told.requested_at = command.issued_at;
}

bool note(StopCourse& stop, const Ack& ack) {
  StopTold& told = stop.told;
  if (ack.action != "stop" && !ack.action.empty()) return note_platform(told, ack);
  // Who has it already, or is past its step, gets the next revision; a launch that came later was
  // never meant.
  const bool beside = ack.phase == "refused" && (ack.reason == "duplicate" ||
                                                 ack.reason == "too_late" || ack.reason == "stale");
  if (beside) return false;
  unsigned said = kHeard;
  if (ack.phase == "refused") {
    said |= kRefused;
    stop.refused_revision = std::max(stop.refused_revision, ack.revision);
  } else if (ack.phase != "received") {
    said |= kAccepted;
    if (ack.phase == "stopped") said |= kStopped;
  }
  const unsigned taken_back = (said & kAccepted) == 0 ? 0U : unsigned{kRefused};
  const bool news = mark(stop, ack.rank, said, taken_back);
  if (!news && !saves(ack.phase)) return false;
  count_all(stop);
  note_checkpoint(told, ack);
  if (ack.phase == "stopped") {
    told.step = std::max(told.step.value_or(ack.step), ack.step);
    if (!told.exit_code) told.exit_code = ack.exit_code;
  }
  move_on(told, ack);
  return true;
}

void note_end(StopCourse& stop, std::uint32_t world_size) {
  StopTold& told = stop.told;
  if (told.answers.asked == 0) told.answers.asked = world_size;
  if (told.answers.accepted > 0) told.state = "stopped";
}

}  // namespace tocsin::core

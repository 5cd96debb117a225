// Logged entries and snapshots. A partition's state at a set of input positions is the last cut,
// plus the frames from the cut's positions on, plus the entries logged since (restore.cc reads it
// back).
#include <algorithm>

#include "rules/engine_impl.h"

namespace tocsin::rules {
namespace {

constexpr std::size_t kPartBytes = 128 * 1024;  // about, of the units of one part

}  // namespace

std::uint32_t Engine::Impl::slots_per_part() const {
  std::size_t each = sizeof(Slot) + sizeof(std::uint16_t) + sizeof(Match);
  for (const auto& row : row_rules) {
    each += row.program->state_bytes() + sizeof(Life) + sizeof(Match);
  }
  return static_cast<std::uint32_t>(
      std::bit_floor(std::clamp<std::size_t>(kPartBytes / each, 16, 4096)));
}

void Engine::Impl::log(Entry entry) {
  if (part->silent || options.record_time) return;
  entry.next = {part->next.begin(), part->next.end()};
  std::string bytes;
  Writer writer(bytes);
  io(writer, entry);
  part->output.log.push_back({part->number, log_key(part->log_next++), seal(bytes, 0)});
}

// How far the input is beyond what it was when the entry was made: < 0 not there yet, 0 there.
int Engine::Impl::beyond(const Entry& entry) const {
  int out = 0;
  for (const auto& [stream, position] : entry.next) {
    const auto found = part->next.find(stream);
    if (found == part->next.end() || found->second < position) return -1;
    if (found->second > position) out = 1;
  }
  return out;
}

void Engine::Impl::replay_one() {
  const Entry entry = std::move(part->replay.front());
  part->replay.pop_front();
  const std::int64_t arrival = std::exchange(now, entry.now);
  apply(entry);
  now = arrival;
}

void Engine::Impl::replay_entries() {
  while (!part->replay.empty()) {
    const int past = beyond(part->replay.front());
    // One that was made in the middle of a record waits for that place: see replay_within.
    if (past < 0 || (past == 0 && part->replay.front().within_record())) return;
    replay_one();
  }
}

void Engine::Impl::replay_within(const Run& run, std::uint32_t worker) {
  if (part->replay.empty()) return;
  const Entry& next = part->replay.front();
  if (next.within_record() && next.run == run.id && next.worker == worker && beyond(next) == 0) {
    replay_one();
  }
}

bool Engine::snapshot(std::int32_t partition, std::size_t budget,
                      core::FunctionRef<void(StateRecord)> emit) {
  const auto found = impl_->partitions.find(partition);
  if (found == impl_->partitions.end() || found->second.silent) return false;
  PartitionState& state = found->second;
  if (!state.cut.busy()) {
    if (!state.output.empty()) return true;  // not committed before what it stands for
    if (!state.cut.changed() && state.log_first == state.log_next) return false;
    Index index{{state.next.begin(), state.next.end()},
                {},
                state.log_next,
                {state.refused.begin(), state.refused.end()},
                state.cut.slots_per_part(),
                impl_->layout()};
    for (const auto& [id, run] : state.runs) index.runs.emplace_back(id, run->life);
    state.cut.begin(std::move(index), state.log_first);
    state.log_first = state.log_next;
  }
  return state.cut.write(state.runs, budget, emit, impl_->stats);
}

}  // namespace tocsin::rules

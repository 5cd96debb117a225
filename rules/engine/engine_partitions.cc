// The engine's partitions: what they decided is taken, they are written down, come back, and go.
#include <algorithm>
#include <utility>

#include "rules/engine/engine_impl.h"
#include "rules/engine/state/snapshot.h"

namespace tocsin::rules {

Output Engine::take(std::int32_t partition) {
  PartitionState* const found = impl_->ctx.partitions.find(partition);
  if (found == nullptr) return {};
  PartitionState& state = *found;
  if (state.owes_first_index()) {
    state.output.log.insert(state.output.log.begin(), std::move(*state.first_index));
    state.first_index.reset();
  }
  return std::exchange(state.output, {});
}

std::vector<std::int32_t> Engine::pending() const {
  std::vector<std::int32_t> out;
  for (const auto& [number, partition] : impl_->ctx.partitions) {
    if (!partition.output.empty() || partition.owes_first_index()) out.push_back(number);
  }
  return out;
}

void Engine::go_live(std::int32_t partition, core::WallTime now) {
  PartitionState& state = impl_->ctx.partitions.open(partition);
  impl_->ctx.enter(state);
  impl_->ctx.now = impl_->ctx.evaluated_at = core::nanoseconds(now);
  if (state.silent) {
    impl_->decisions.replay_entries();
    // What is left was decided at the very position where we go on.
    const std::deque<Entry> rest = std::exchange(state.replay, {});
    for (const Entry& entry : rest) impl_->decisions.apply(entry);
  }
  for (auto& [id, run] : state.runs) impl_->timers.clamp_times(*run, core::nanoseconds(now));
  state.silent = false;
  if (!state.incomplete.empty()) impl_->own.tell_incomplete();
  for (Event& event : state.farewell) state.output.events.push_back(std::move(event));
  state.farewell.clear();
  if (state.rules != impl_->ctx.configured.table) impl_->decisions.reload();
}

void Engine::drop(std::int32_t partition) {
  impl_->ctx.part = nullptr;
  impl_->ctx.partitions.drop(partition);
}

void Engine::mark_incomplete(std::int32_t partition, std::string_view why) {
  PartitionState& state = impl_->ctx.partitions.open(partition);
  const bool known = !state.incomplete.empty();
  state.incomplete = why.empty() ? "its input does not reach back to it" : why;
  if (known || state.silent) return;  // told already, or when it goes live
  impl_->ctx.enter(state);
  impl_->own.tell_incomplete();
}

bool Engine::snapshot(std::int32_t partition, std::size_t budget,
                      core::FunctionRef<void(StateRecord)> emit) {
  PartitionState* const found = impl_->ctx.partitions.find(partition);
  if (found == nullptr || found->silent) return false;
  return write_snapshot(impl_->ctx, *found, budget, emit);
}

core::Status Engine::restore(std::int32_t partition, std::string_view key,
                             std::optional<std::string_view> value) {
  auto& restored = impl_->ctx.partitions.open(partition).restored;
  if (value) {
    restored[std::string(key)] = *value;
  } else {
    restored.erase(std::string(key));
  }
  return core::ok();
}

core::Result<Restored> Engine::finish_restore(std::int32_t partition,
                                              std::span<const core::Position> committed) {
  return impl_->restore.finish(partition, committed);
}

}  // namespace tocsin::rules

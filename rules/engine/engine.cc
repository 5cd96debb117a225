// The engine's doors: records and ticks in, what partitions decided and remember out.
#include <algorithm>
#include <utility>

#include "rules/engine/partition/moment.h"
#include "rules/engine/parts.h"
#include "rules/engine/state/snapshot.h"

namespace tocsin::rules {

struct Engine::Impl {
  EngineState state;
  EngineParts parts = make_parts(state);
  Moment moment;

  /// nullptr: it is not held, or nothing is decided there yet.
  PartitionState* live(std::int32_t partition) {
    PartitionState* const found = state.partitions.find(partition);
    return found == nullptr || found->silent ? nullptr : found;
  }
};

namespace {

/// Where that stream is read on; made when it is new.
std::int64_t& next_of(PartitionState& partition, std::string_view stream) {
  auto found = partition.next.find(stream);
  if (found == partition.next.end()) {
    found = partition.next.emplace(std::string(stream), kNever).first;
  }
  return found->second;
}

}  // namespace

core::Result<std::unique_ptr<Engine>> Engine::create(RulesConfig rules, EngineOptions options) {
  if (const auto status = check_rules(rules); !status) return status.error();
  auto impl = std::make_unique<Impl>();
  impl->state.configured = ConfiguredRules(std::move(rules));
  impl->state.options = std::move(options);
  return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

core::Status Engine::reload(RulesConfig rules, core::WallTime now) {
  if (const auto status = check_rules(rules); !status) return status;
  impl_->state.configured = ConfiguredRules(std::move(rules));
  impl_->moment.move_to(now);
  for (auto& [number, partition] : impl_->state.partitions) {
    if (partition.silent) continue;  // when it goes live
    impl_->parts.decisions->reload(impl_->moment.turn(partition));
  }
  return core::ok();
}

void Engine::on_frame(const core::FrameView& frame, const core::FrameBody& body,
                      const RecordRef& ref, core::WallTime arrival) {
  PartitionState& partition = impl_->state.partitions.open(ref.partition);
  std::int64_t& next = next_of(partition, ref.stream);
  // The record just handled may hold several frames (a JSON array): only earlier ones are dropped.
  if (ref.offset < next && ref.offset + 1 != next) return;
  const bool record_time = impl_->state.options.record_time;
  impl_->moment.move_to(ref, arrival, record_time);
  const Turn turn = impl_->moment.turn(partition);
  EngineParts& parts = impl_->parts;
  if (!partition.replay.empty()) parts.decisions->replay_entries(turn);
  if (record_time) parts.timers->advance_record_time(turn);
  try {
    parts.frames->on_frame(turn, frame, body);
  } catch (...) {
    parts.book->settle(turn);  // what was found before it went wrong
    throw;
  }
  parts.book->settle(turn);
  next = ref.offset + 1;
}

void Engine::skip(const RecordRef& ref) {
  std::int64_t& next = next_of(impl_->state.partitions.open(ref.partition), ref.stream);
  next = std::max(next, ref.offset + 1);
}

void Engine::tick(core::WallTime now, core::FunctionRef<bool(std::int32_t)> live) {
  if (impl_->state.options.record_time) return;
  impl_->moment.move_to(now);
  for (auto& [number, partition] : impl_->state.partitions) {
    if (partition.silent) continue;
    impl_->parts.timers->tick_some(impl_->moment.turn(partition), live(number));
  }
}

void Engine::end_of_input() {
  for (auto& [number, partition] : impl_->state.partitions) {
    const Turn turn = impl_->moment.turn(partition);
    for (auto& [id, run] : partition.runs) {
      if (run->job.ended) continue;
      impl_->parts.ends->stop_reading(turn, *run);
      impl_->parts.book->settle(turn);
    }
  }
}

std::uint64_t Engine::compares(std::int32_t partition) const {
  const PartitionState* const found = impl_->state.partitions.find(partition);
  return found == nullptr ? 0 : Comparisons::wanted(*found);
}

void Engine::learn(std::int32_t partition, const Comparison& record, core::WallTime now) {
  PartitionState* const found = impl_->live(partition);
  if (found == nullptr) return;
  impl_->moment.move_to(now);
  const Turn turn = impl_->moment.turn(*found);
  if (auto entry = Comparisons::news(turn, record)) {
    impl_->parts.decisions->decide(turn, std::move(*entry));
  }
}

std::vector<core::RunUid> Engine::further_shards(std::int32_t partition) const {
  const PartitionState* const found = impl_->state.partitions.find(partition);
  return found == nullptr ? std::vector<core::RunUid>() : FurtherShards::runs_of(*found);
}

void Engine::settle(std::int32_t partition, const core::JobEvent& event, core::WallTime now,
                    bool live) {
  PartitionState* const found = impl_->live(partition);
  if (found == nullptr) return;
  impl_->moment.move_to(now);
  const Turn turn = impl_->moment.turn(*found);
  for (Entry& entry : FurtherShards::news(turn, event, live)) {
    impl_->parts.decisions->decide(turn, std::move(entry));
  }
}

Output Engine::take(std::int32_t partition) {
  PartitionState* const found = impl_->state.partitions.find(partition);
  if (found == nullptr) return {};
  if (found->owes_first_index()) {
    found->output.log.insert(found->output.log.begin(), std::move(*found->first_index));
    found->first_index.reset();
  }
  return std::exchange(found->output, {});
}

std::vector<std::int32_t> Engine::pending() const {
  std::vector<std::int32_t> out;
  for (const auto& [number, partition] : impl_->state.partitions) {
    if (!partition.output.empty() || partition.owes_first_index()) out.push_back(number);
  }
  return out;
}

bool Engine::snapshot(std::int32_t partition, std::size_t budget,
                      core::FunctionRef<void(StateRecord)> emit) {
  PartitionState* const found = impl_->live(partition);
  return found != nullptr && write_snapshot(*found, budget, impl_->state.stats, emit);
}

core::Status Engine::restore(std::int32_t partition, std::string_view key,
                             std::optional<std::string_view> value) {
  auto& restored = impl_->state.partitions.open(partition).restored;
  if (value) {
    restored[std::string(key)] = *value;
  } else {
    restored.erase(std::string(key));
  }
  return core::ok();
}

core::Result<Restored> Engine::finish_restore(std::int32_t partition,
                                              std::span<const core::Position> committed) {
  return impl_->parts.restore->finish(partition, impl_->moment, committed);
}

void Engine::go_live(std::int32_t partition, core::WallTime now) {
  PartitionState& state = impl_->state.partitions.open(partition);
  EngineParts& parts = impl_->parts;
  impl_->moment.move_to(now);
  const Turn turn = impl_->moment.turn(state);
  if (state.silent) {
    parts.decisions->replay_entries(turn);
    // What is left was decided at the very position where we go on.
    const std::deque<Entry> rest = std::exchange(state.replay, {});
    for (const Entry& entry : rest) parts.decisions->apply(turn, entry);
  }
  parts.timers->clamp_times(turn);
  state.silent = false;
  if (!state.incomplete.empty()) parts.own->tell_incomplete(turn);
  for (Event& event : state.farewell) state.output.events.push_back(std::move(event));
  state.farewell.clear();
  if (state.rules != impl_->state.configured.table) parts.decisions->reload(turn);
}

void Engine::drop(std::int32_t partition) { impl_->state.partitions.drop(partition); }

void Engine::mark_incomplete(std::int32_t partition, std::string_view why) {
  PartitionState& state = impl_->state.partitions.open(partition);
  const bool known = !state.incomplete.empty();
  state.incomplete = why.empty() ? "its input does not reach back to it" : why;
  if (known || state.silent) return;  // told already, or when it goes live
  impl_->parts.own->tell_incomplete(impl_->moment.turn(state));
}

EngineStats Engine::stats() const {
  EngineStats out = impl_->state.stats;
  out.runs += impl_->state.partitions.runs();
  for (const auto& [number, partition] : impl_->state.partitions) {
    for (const auto& [id, run] : partition.runs) {
      out.units += run->rosters.units;
      out.open_issues += run->issues.open.size();
    }
  }
  return out;
}

}  // namespace tocsin::rules

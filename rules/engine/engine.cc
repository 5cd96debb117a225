// The engine's front: records and ticks in, guards against what was handled before.
#include <algorithm>

#include "rules/engine/engine_impl.h"

namespace tocsin::rules {

void Engine::Impl::on_frame(const core::FrameView& frame, const core::FrameBody& body) {
  const core::FrameHeader& header = frame.header();
  const auto* life = std::get_if<core::Lifecycle>(&body);
  ++ctx.stats.frames;
  ctx.stats.rows += frame.rows();
  if (header.run.nil()) return;  // a node that serves no run: nothing here judges it
  ctx.current = kNoRoster;
  Run* run = attempts.find_run(header);
  if (run == nullptr) return;
  ctx.part->cut.touch_head(*run);
  const bool agent = header.rank == core::kNodeAgentRank;
  if (life != nullptr && life->event == core::LifecycleEvent::died) {
    ends.on_died(*run, *life, header.time);
    if (!agent) return;  // its parent says so: no worker of the run
  }
  if (!attempts.enter(*run, frame, life)) return;
  const std::uint32_t number = arrivals.find_worker(*run, header);
  if (number == kNoRoster) return;
  ctx.part->cut.touch_worker(*run, number);
  if (!arrivals.accept(*run, run->workers[number], header)) return;
  if (header.shard_count > run->course.shards) reports.spread(*run, header.shard_count);
  if (run->job.lost && !agent) ends.revive(*run, header.time);
  if (!agent) {
    ctx.current = number;
    attempts.check_clock(*run, number, header);
    run->course.last_any = ctx.now;  // what a node's agent sends is no sign of life of the run
    run->pulse.beats = run->pulse.beats || life != nullptr;
    for (const auto& clock : ctx.rules->clocks) silence.count(*run, clock, false);
    // Times from the far future move nothing.
    run->course.last_time = std::max(run->course.last_time,
                                     std::min(header.time, add(core::nanoseconds(ctx.ref.timestamp),
                                                               ctx.options.config.max_clock_skew)));
  }
  if (is_progress(header.kind)) arrivals.progress(*run, run->workers[number], header);
  if (life != nullptr && life->expect_next_in) {
    arrivals.promise(*run, run->workers[number], header, *life->expect_next_in);
  }
  handle(*run, number, frame, body);
  if (ctx.current < run->workers.size()) run->workers.sync(ctx.current);
  ctx.current = kNoRoster;
}

void Engine::Impl::handle(Run& run, std::uint32_t number, const core::FrameView& frame,
                          const core::FrameBody& body) {
  const core::FrameHeader& header = frame.header();
  switch (header.kind) {
    case core::FrameKind::summary:
      return intake.on_summary(run, number, frame);
    case core::FrameKind::scalar:
      return intake.on_scalars(run, number, frame);
    case core::FrameKind::step_end:
      return intake.on_step_end(run, number, frame);
    case core::FrameKind::lifecycle:
      if (const auto* life = std::get_if<core::Lifecycle>(&body)) {
        lifecycle.on_lifecycle(run, number, frame, *life);
      }
      return;
    case core::FrameKind::system:
      return samples.on_system(run, number, frame);
    case core::FrameKind::dictionary:
      if (const auto* names = std::get_if<core::Dictionary>(&body))
        dictionaries.on_dictionary(run, number, *names);
      return;
    case core::FrameKind::span:
      return evaluations.feed_all(run, input::kSpans, [&](Evaluator& one, Scope& scope) {
        one.on_spans(number, frame, scope);
      });
    case core::FrameKind::tensor_chunk:
    case core::FrameKind::snapshot:
      return;
  }
}

core::Result<std::unique_ptr<Engine>> Engine::create(RulesConfig rules, EngineOptions options) {
  if (const auto status = check_rules(rules); !status) return status.error();
  auto impl = std::make_unique<Impl>();
  impl->ctx.configured = ConfiguredRules(std::move(rules));
  impl->ctx.options = std::move(options);
  return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

core::Status Engine::reload(RulesConfig rules, core::WallTime now) {
  if (const auto status = check_rules(rules); !status) return status;
  Context& ctx = impl_->ctx;
  ctx.configured = ConfiguredRules(std::move(rules));
  ctx.now = ctx.evaluated_at = core::nanoseconds(now);
  for (auto& [number, partition] : ctx.partitions) {
    if (partition.silent) continue;  // when it goes live
    ctx.enter(partition);
    impl_->decisions.reload();
  }
  return core::ok();
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

void Engine::on_frame(const core::FrameView& frame, const core::FrameBody& body,
                      const RecordRef& ref, core::WallTime arrival) {
  impl_->on_record(frame, body, ref, arrival);
}

void Engine::Impl::on_record(const core::FrameView& frame, const core::FrameBody& body,
                             const RecordRef& from, core::WallTime arrival) {
  PartitionState& partition = ctx.partitions.open(from.partition);
  auto next = partition.next.find(from.stream);
  if (next == partition.next.end()) {
    next = partition.next.emplace(std::string(from.stream), kNever).first;
  }
  // The record just handled may hold several frames (a JSON array): only earlier ones are dropped.
  if (from.offset < next->second && from.offset + 1 != next->second) return;
  ctx.enter(partition);
  ctx.ref = from;
  if (ctx.ref_topic != from.topic) ctx.ref_topic = from.topic;
  const std::int64_t record_time = core::nanoseconds(from.timestamp);
  ctx.now = ctx.options.record_time ? record_time : core::nanoseconds(arrival);
  ctx.evaluated_at = core::nanoseconds(arrival);
  if (!partition.replay.empty()) decisions.replay_entries();
  if (ctx.options.record_time) timers.advance_record_time();
  try {
    on_frame(frame, body);
  } catch (...) {
    book.settle();  // what was found before it went wrong
    throw;
  }
  book.settle();
  next->second = from.offset + 1;
}

void Engine::skip(const RecordRef& ref) {
  StreamPositions& next = impl_->ctx.partitions.open(ref.partition).next;
  auto found = next.find(ref.stream);
  if (found == next.end()) found = next.emplace(std::string(ref.stream), kNever).first;
  found->second = std::max(found->second, ref.offset + 1);
}

void Engine::tick(core::WallTime now, core::FunctionRef<bool(std::int32_t)> live) {
  if (impl_->ctx.options.record_time) return;
  impl_->ctx.now = core::nanoseconds(now);
  impl_->ctx.evaluated_at = impl_->ctx.now;
  for (auto& [number, partition] : impl_->ctx.partitions) {
    if (!partition.silent) impl_->timers.tick_some(partition, impl_->ctx.now, live(number));
  }
}

void Engine::end_of_input() {
  for (auto& [number, partition] : impl_->ctx.partitions) {
    impl_->ctx.enter(partition);
    for (auto& [id, run] : partition.runs) {
      if (run->job.ended) continue;
      impl_->ends.stop_reading(*run);
      impl_->book.settle();
    }
  }
}

std::uint64_t Engine::compares(std::int32_t partition) const {
  const PartitionState* const found = impl_->ctx.partitions.find(partition);
  return found == nullptr ? 0 : Comparisons::wanted(*found);
}

void Engine::learn(std::int32_t partition, const Comparison& record, core::WallTime now) {
  PartitionState* const found = impl_->ctx.partitions.find(partition);
  if (found == nullptr || found->silent) return;
  impl_->ctx.enter(*found);
  impl_->ctx.now = impl_->ctx.evaluated_at = core::nanoseconds(now);
  if (auto entry = impl_->comparisons.news(record)) impl_->decisions.decide(std::move(*entry));
}

std::vector<core::RunUid> Engine::further_shards(std::int32_t partition) const {
  const PartitionState* const found = impl_->ctx.partitions.find(partition);
  return found == nullptr ? std::vector<core::RunUid>() : FurtherShards::runs_of(*found);
}

void Engine::settle(std::int32_t partition, const core::JobEvent& event, core::WallTime now,
                    bool live) {
  PartitionState* const found = impl_->ctx.partitions.find(partition);
  if (found == nullptr || found->silent) return;
  impl_->ctx.enter(*found);
  impl_->ctx.now = impl_->ctx.evaluated_at = core::nanoseconds(now);
  for (Entry& entry : impl_->further.news(event, live)) impl_->decisions.decide(std::move(entry));
}

EngineStats Engine::stats() const {
  EngineStats out = impl_->ctx.stats;
  out.runs += impl_->ctx.partitions.runs();
  for (const auto& [number, partition] : impl_->ctx.partitions) {
    for (const auto& [id, run] : partition.runs) {
      out.units += run->rosters.units;
      out.open_issues += run->issues.open.size();
    }
  }
  return out;
}

}  // namespace tocsin::rules

// The engine's front: records and ticks in, guards against duplicates, gaps and earlier attempts.
#include <algorithm>
#include <cmath>

#include "rules/engine_impl.h"

namespace tocsin::rules {

void Engine::Impl::bind() {
  all_rules = configured.rules;
  first_own = static_cast<std::uint32_t>(all_rules.size());
  for (const OperationalRule& rule : operational_rules()) {
    all_rules.push_back(operational_settings(rule));
  }
  for (std::uint32_t i = 0; i < first_own; ++i) {
    const Program* program = all_rules[i].program.get();
    if (const auto* row = dynamic_cast<const RowProgram*>(program)) {
      row_rules.push_back({i, row});
    } else if (const auto* clock = dynamic_cast<const ClockProgram*>(program)) {
      clock_rules.push_back({i, clock});
    }
  }
  bind_evaluators();
  stats.evaluations.assign(all_rules.size(), 0);
  stats.hits.assign(all_rules.size(), 0);
}

std::string Engine::Impl::name_of(const Run& run, std::uint64_t hash) const {
  if (const Name* name = run.names.table.find(hash)) return name->text;
  std::array<std::uint8_t, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(hash >> (56 - 8 * i));
  }
  return core::hex(bytes);
}

bool Engine::Impl::wants_worker(const Common& common, const Worker& worker) const {
  return common.workers.empty() || std::find(common.workers.begin(), common.workers.end(),
                                             worker.name) != common.workers.end();
}

PartitionState& Engine::Impl::partition(std::int32_t number) {
  const auto known = partitions.find(number);
  if (known != partitions.end()) return known->second;
  PartitionState& fresh = partitions[number];
  fresh.number = number;
  fresh.cut.configure(number, slots_per_part());
  return fresh;
}

std::uint32_t Engine::Impl::find_worker(Run& run, const core::FrameHeader& header) {
  const std::uint32_t known = run.workers.find(header.worker, header.rank);
  if (known != Workers::kNone) return known;
  if (run.workers.size() >= options.config.max_units_per_run) {
    ++stats.refused_units;
    return kNoLane;
  }
  const auto number = static_cast<std::uint32_t>(run.workers.size());
  part->cut.touch_worker(run, number);
  Worker worker;
  worker.name_hash = header.worker;
  worker.rank = header.rank;
  worker.agent = header.rank == core::kNodeAgentRank;
  worker.last_arrival = now;
  // Workers have a default name, so that most runs need no dictionary to speak of them.
  const std::string usual = "worker_" + std::to_string(header.rank);
  if (const Name* name = run.names.table.find(header.worker)) {
    worker.name = name->text;
    worker.named = true;
  } else {
    worker.name = core::name_hash(usual) == header.worker ? usual : name_of(run, header.worker);
  }
  return run.workers.add(std::move(worker));
}

bool Engine::Impl::accept_sequence(Run& run, Worker& worker, const core::FrameHeader& header) {
  if ((header.flags & core::frame_flag::kUnsequenced) != 0) {
    worker.unsequenced = true;
    return true;
  }
  // Which of two processes of a worker is the newer one is settled by their launches, in the order
  // of the log. Where those see no starts the larger number is: an agent's, or a further shard's.
  const bool settled = !worker.agent && run.id.shard == 0;
  if (!settled && header.incarnation < worker.incarnation) {
    ++stats.stale_frames;
    return false;
  }
  if (header.incarnation != worker.incarnation) {
    if (worker.incarnation != 0) {
      reset_units(run, run.workers.number_of(worker));
    }
    worker.incarnation = header.incarnation;
    worker.has_sequence = false;
    worker.gone = false;
  }
  if (worker.has_sequence) {
    if (header.sequence <= worker.sequence) {
      ++stats.duplicate_frames;
      return false;
    }
    if (const std::uint64_t missing = header.sequence - worker.sequence - 1; missing > 0) {
      worker.gap = true;
      worker.gap_frames += missing;
      stats.missing_frames += missing;
    }
  }
  worker.sequence = header.sequence;
  worker.has_sequence = true;
  return true;
}

void Engine::Impl::progress(Run& run, Worker& worker, const core::FrameHeader& header) {
  worker.last_arrival = now;
  worker.last_time = header.time;
  worker.idle = false;
  if (worker.agent) return;
  const std::int64_t last = std::exchange(run.course.last_arrival, now);
  run.course.last_mode = header.mode;
  run.course.last_mode_step = header.step;
  if (header.mode == core::Mode::train || header.mode == core::Mode::global) {
    run.course.last_step = std::max(run.course.last_step, header.step);
  }
  run.course.last_global_step = std::max(run.course.last_global_step, header.global_step);
  {
    worker.active = static_cast<std::uint8_t>(worker.active | mode_bit(header.mode));
    run.course.seen_modes =
        static_cast<std::uint8_t>(run.course.seen_modes | mode_bit(header.mode));
    const bool trains = header.mode == core::Mode::train || header.mode == core::Mode::global;
    if (trains && run.course.first_train_arrival == kNever) {
      run.course.first_train_arrival = now;
    }
    if ((worker.unsequenced || worker.gap) && worker.mode != header.mode) {
      // No step-ends, or the last one was lost: entering another mode ends the last step of the one
      // before.
      const std::size_t before = at(worker.mode);
      worker.mark[before] = std::max(worker.mark[before], worker.seen[before]);
      if (worker.unsequenced && trains) {
        worker.active = static_cast<std::uint8_t>(
            worker.active & ~(mode_bit(core::Mode::eval) | mode_bit(core::Mode::predict)));
      }
    }
    worker.mode = header.mode;
    worker.pass = header.pass;
  }
  // The issues of a clock rule end with the silence they speak of.
  for (const auto& clock : clock_rules) {
    // While the run as a whole was silent no worker was: those that still are, are so now.
    const bool was_silent = add(last, clock.program->threshold) <= now;
    next_check = std::min(next_check, was_silent ? now : add(now, clock.program->threshold));
    const auto number = run.workers.number_of(worker);
    for (const std::uint32_t who : {kNoLane, number}) {
      const auto found = run.issues.clocks.find({clock.rule, who});
      if (found == run.issues.clocks.end() || !found->second.fired) continue;
      found->second.fired = false;
      Place place;
      place.step_clock = false;
      place.time = header.time;
      resolve_open(run, {clock.rule, kNoLane, who, 0xFF, 0}, core::Resolution::recovered, place);
    }
  }
}

void Engine::Impl::on_frame(const core::FrameView& frame, const core::FrameBody& body) {
  const core::FrameHeader& header = frame.header();
  const auto* life = std::get_if<core::Lifecycle>(&body);
  ++stats.frames;
  stats.rows += frame.rows();
  if (header.run.nil()) return;  // a node that serves no run: nothing here judges it
  current = kNoLane;
  Run* run = find_run(header);
  if (run == nullptr) return;
  part->cut.touch_head(*run);
  const bool agent = header.rank == core::kNodeAgentRank;
  if (life != nullptr && life->event == core::LifecycleEvent::died) {
    on_died(*run, *life, header.time);
    if (!agent) return;  // its parent says so: no worker of the run
  }
  if (!enter_attempt(*run, frame, life)) return;
  const std::uint32_t number = find_worker(*run, header);
  if (number == kNoLane) return;
  part->cut.touch_worker(*run, number);
  if (!accept_sequence(*run, run->workers[number], header)) return;
  if (run->job.lost && !agent) revive(*run, header.time);
  if (!agent) {
    current = number;
    check_clock(*run, number, header);
    run->course.last_any = now;  // what a node's agent sends is no sign of life of the run
    run->pulse.beats = run->pulse.beats || life != nullptr;
    for (const auto& clock : clock_rules) count_clock(*run, clock, false);
    // Times from the far future move nothing.
    run->course.last_time =
        std::max(run->course.last_time, std::min(header.time, add(core::nanoseconds(ref.timestamp),
                                                                  options.config.max_clock_skew)));
  }
  if (is_progress(header.kind)) progress(*run, run->workers[number], header);
  handle(*run, number, frame, body);
  if (current < run->workers.size()) sync(*run, current);
  current = kNoLane;
}

void Engine::Impl::handle(Run& run, std::uint32_t number, const core::FrameView& frame,
                          const core::FrameBody& body) {
  const core::FrameHeader& header = frame.header();
  switch (header.kind) {
    case core::FrameKind::summary:
      return on_summary(run, number, frame);
    case core::FrameKind::scalar:
      return on_scalars(run, number, frame);
    case core::FrameKind::step_end:
      return on_step_end(run, number, frame);
    case core::FrameKind::lifecycle:
      if (const auto* life = std::get_if<core::Lifecycle>(&body)) {
        on_lifecycle(run, number, frame, *life);
      }
      return;
    case core::FrameKind::system:
      return on_system(run, number, frame);
    case core::FrameKind::dictionary:
      if (const auto* names = std::get_if<core::Dictionary>(&body)) on_dictionary(run, *names);
      return;
    case core::FrameKind::span:
      return feed_all(run, input::kSpans,
                      [&](Evaluator& one, Scope& scope) { one.on_spans(number, frame, scope); });
    case core::FrameKind::tensor_chunk:
    case core::FrameKind::snapshot:
      return;
  }
}

core::Result<std::unique_ptr<Engine>> Engine::create(RulesConfig rules, EngineOptions options) {
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    if (!rules.rules[i].program) {
      return core::invalid_argument("rule " + rules.rules[i].name + " has no program");
    }
    for (std::size_t k = 0; k < i; ++k) {
      if (rules.rules[k].name == rules.rules[i].name) {
        return core::invalid_argument("two rules are called " + rules.rules[i].name);
      }
    }
  }
  auto impl = std::make_unique<Impl>();
  impl->configured = std::move(rules);
  impl->options = std::move(options);
  impl->bind();
  return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

void Engine::on_frame(const core::FrameView& frame, const core::FrameBody& body,
                      const RecordRef& ref, core::WallTime arrival) {
  impl_->on_record(frame, body, ref, arrival);
}

void Engine::Impl::on_record(const core::FrameView& frame, const core::FrameBody& body,
                             const RecordRef& from, core::WallTime arrival) {
  PartitionState& partition = this->partition(from.partition);
  auto next = partition.next.find(from.stream);
  if (next == partition.next.end()) {
    next = partition.next.emplace(std::string(from.stream), kNever).first;
  }
  // The record just handled may hold several frames (a JSON array): only earlier ones are dropped.
  if (from.offset < next->second && from.offset + 1 != next->second) return;
  part = &partition;
  ref = from;
  if (ref_topic != from.topic) ref_topic = from.topic;
  const std::int64_t record_time = core::nanoseconds(from.timestamp);
  now = options.record_time ? record_time : core::nanoseconds(arrival);
  evaluated_at = core::nanoseconds(arrival);
  if (!partition.replay.empty()) replay_entries();
  if (options.record_time) advance_record_time();
  on_frame(frame, body);
  next->second = from.offset + 1;
}

void Engine::skip(const RecordRef& ref) {
  StreamPositions& next = impl_->partition(ref.partition).next;
  auto found = next.find(ref.stream);
  if (found == next.end()) found = next.emplace(std::string(ref.stream), kNever).first;
  found->second = std::max(found->second, ref.offset + 1);
}

void Engine::tick(core::WallTime now, core::FunctionRef<bool(std::int32_t)> live) {
  if (impl_->options.record_time) return;
  impl_->now = core::nanoseconds(now);
  impl_->evaluated_at = impl_->now;
  for (auto& [number, partition] : impl_->partitions) {
    if (!partition.silent) impl_->tick_partition(partition, impl_->now, live(number));
  }
}

void Engine::end_of_input() {
  for (auto& [number, partition] : impl_->partitions) {
    impl_->part = &partition;
    for (auto& [id, run] : partition.runs) {
      if (run->job.ended) continue;
      partition.cut.touch_head(*run);
      run->course.grace_over = true;
      impl_->advance(*run, true);
      impl_->flush_rows(*run);
      impl_->flush_nodes(*run);
      impl_->end_evaluators(*run);
      impl_->check_end(*run);
    }
  }
}

Output Engine::take(std::int32_t partition) {
  const auto found = impl_->partitions.find(partition);
  if (found == impl_->partitions.end()) return {};
  PartitionState& state = found->second;
  if (state.owes_first_index()) {
    state.output.log.insert(state.output.log.begin(), std::move(*state.first_index));
    state.first_index.reset();
  }
  return std::exchange(state.output, {});
}

std::vector<std::int32_t> Engine::pending() const {
  std::vector<std::int32_t> out;
  for (const auto& [number, partition] : impl_->partitions) {
    if (!partition.output.empty() || partition.owes_first_index()) out.push_back(number);
  }
  return out;
}

void Engine::go_live(std::int32_t partition, core::WallTime now) {
  PartitionState& state = impl_->partition(partition);
  impl_->part = &state;
  impl_->now = impl_->evaluated_at = core::nanoseconds(now);
  if (state.silent) {
    impl_->replay_entries();
    // What is left was decided at the very position where we go on.
    const std::deque<Entry> rest = std::exchange(state.replay, {});
    for (const Entry& entry : rest) impl_->apply(entry);
  }
  for (auto& [id, run] : state.runs) impl_->clamp_times(*run, core::nanoseconds(now));
  state.silent = false;
  if (!state.incomplete.empty()) impl_->tell_incomplete();
  if (state.farewell.empty()) return;
  for (Event& event : state.farewell) state.output.events.push_back(std::move(event));
  state.farewell.clear();
}

void Engine::drop(std::int32_t partition) {
  impl_->part = nullptr;
  impl_->partitions.erase(partition);
}

void Engine::mark_incomplete(std::int32_t partition, std::string_view why) {
  PartitionState& state = impl_->partition(partition);
  const bool known = !state.incomplete.empty();
  state.incomplete = why.empty() ? "its input does not reach back to it" : why;
  if (known || state.silent) return;  // told already, or when it goes live
  impl_->part = &state;
  impl_->tell_incomplete();
}

void Engine::Impl::tell_incomplete() {
  raise_plain(Operational::state_incomplete, {}, now,
              "The rule state of partition " + std::to_string(part->number) +
                  " is not what it was: " + part->incomplete + ".");
}

EngineStats Engine::stats() const {
  EngineStats out = impl_->stats;
  out.evaluations.resize(impl_->first_own);
  out.hits.resize(impl_->first_own);
  for (const auto& [number, partition] : impl_->partitions) {
    out.runs += partition.runs.size();
    for (const auto& [id, run] : partition.runs) {
      out.units += run->lanes.units;
      out.open_issues += run->issues.open.size();
    }
  }
  return out;
}

}  // namespace tocsin::rules

// Whether a frame is followed at all: room for its run, the attempt it belongs to, and whether its
// worker's clock can be believed.
#include <algorithm>

#include "rules/engine_impl.h"

namespace tocsin::rules {

// An ended run of this partition, the one heard of longest ago, makes room for another.
bool Engine::Impl::make_room() {
  const Run* oldest = nullptr;
  for (const auto& [id, run] : part->runs) {
    if (run->job.ended && (oldest == nullptr || run->course.last_any < oldest->course.last_any))
      oldest = run.get();
  }
  if (oldest == nullptr) return false;
  ++stats.evicted_runs;
  decide({Entry::What::forget, oldest->id, oldest->attempt, kNoLane, 0, now, {}});
  return true;
}

// What is decided by more than the records: applied and logged.
void Engine::Impl::decide(Entry entry) {
  apply(entry);
  log(std::move(entry));
}

Run* Engine::Impl::find_run(const core::FrameHeader& header) {
  const RunId id{header.run, header.shard};
  const auto found = part->runs.find(id);
  if (found != part->runs.end()) return found->second.get();
  // How many runs other partitions hold is not in this one's log: while replaying, entries say it.
  if (!part->silent) {
    std::size_t known = 0;
    for (const auto& [number, partition] : partitions) known += partition.runs.size();
    const bool room = known < options.config.max_runs || make_room();
    const bool refused = part->refused.contains(id);
    if (!room && !refused) decide({Entry::What::refuse, id, 0, kNoLane, 0, now, {}});
    if (room && refused) decide({Entry::What::admit, id, 0, kNoLane, 0, now, {}});
  }
  if (part->refused.contains(id)) {
    ++stats.refused_runs;
    return nullptr;
  }
  auto run = std::make_unique<Run>();
  run->id = id;
  run->partition = ref.partition;
  run->life = run->names.life = part->cut.fresh_life();
  run->attempt = header.attempt;
  run->course.first_seen = now;
  run->course.last_arrival = now;
  run->course.last_any = now;
  run->issues.progress.resize(all_rules.size());
  next_check = std::min(next_check, add(now, options.config.join_grace));
  for (const auto& clock : clock_rules) {
    next_check = std::min(next_check, add(now, clock.program->threshold));
  }
  return part->runs.emplace(id, std::move(run)).first->second.get();
}

// False: the frame is of an attempt that is over.
bool Engine::Impl::enter_attempt(Run& run, const core::FrameView& frame,
                                 const core::Lifecycle* body) {
  const core::FrameHeader& header = frame.header();
  if (header.rank == core::kNodeAgentRank) return !run.job.ended || run.job.lost;
  const bool over = run.job.ended && !run.job.lost;
  const ProcessId process{header.worker, header.rank, header.incarnation};
  const bool first = run.launches.attempt() == 0;
  Launches::Standing standing = Launches::Standing::current;
  if ((header.flags & core::frame_flag::kUnsequenced) != 0 || run.id.shard != 0) {
    // Shards beyond the first see no starts: they go by what the frames state.
    standing = run.launches.stated(header.attempt, over);
  } else if (body != nullptr && body->event == core::LifecycleEvent::start) {
    standing = run.launches.start(process, body->launch, header.attempt, over);
  } else if (body != nullptr && body->event == core::LifecycleEvent::heartbeat) {
    standing = run.launches.heartbeat(process, body->launch, header.attempt, over);
  } else {
    const std::uint32_t known = run.workers.find(header.worker, header.rank);
    if (over || known == Workers::kNone || run.workers[known].incarnation != header.incarnation) {
      standing = run.launches.frame(process, header.attempt, over);
    }
  }
  switch (standing) {
    case Launches::Standing::opened:
      if (first) {
        run.attempt = run.launches.attempt();
      } else {
        supersede(run, run.launches.attempt(),
                  body == nullptr ? std::nullopt : body->continues_from);
      }
      break;
    case Launches::Standing::moved:
      ++stats.moved_launches;
      break;
    case Launches::Standing::current:
      break;
    case Launches::Standing::late:
      ++stats.late_launches;
      [[fallthrough]];
    case Launches::Standing::stale:
      ++stats.stale_frames;
      if (is_progress(header.kind) && run.launches.first_of_unwatched(process)) {
        unwatched(run, header);
      }
      return false;
  }
  if (header.world_size != 0) run.world_size = header.world_size;
  return true;
}

void Engine::Impl::unwatched(Run& run, const core::FrameHeader& header) {
  Finding finding;
  finding.observed = {"attempt", static_cast<double>(header.attempt)};
  finding.op = "<";
  finding.threshold = core::NamedNumber{"newest_attempt", static_cast<double>(run.attempt)};
  finding.summary = "Rank " + std::to_string(header.rank) + " of " +
                    (run.job.name.empty() ? "a run" : run.job.name) +
                    " sends data that belongs to an earlier launch: nothing of it is judged.";
  raise(run, Operational::run_unwatched, kNoLane, header.time, std::move(finding));
}

// Whether a worker's clock can be believed is seen against ours, which is not in the log.
void Engine::Impl::check_clock(Run& run, std::uint32_t number, const core::FrameHeader& header) {
  const std::int64_t most = add(now, options.config.max_clock_skew);
  const bool ahead = header.time > most;
  if (ahead) ++stats.future_times;
  if (part->silent) return replay_within(run, number);
  if (options.record_time || ahead == run.workers[number].skewed) return;
  decide({ahead ? Entry::What::skew : Entry::What::skew_over,
          run.id,
          run.attempt,
          number,
          0,
          now,
          {}});
}

}  // namespace tocsin::rules

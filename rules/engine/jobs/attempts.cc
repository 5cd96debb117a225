#include "rules/engine/jobs/attempts.h"

#include <algorithm>

#include "rules/engine/compare/other_runs.h"

namespace tocsin::rules {

// An ended run of this partition, the one heard of longest ago, makes room for another.
bool Attempts::make_room() {
  const Run* oldest = nullptr;
  for (const auto& [id, run] : ctx_.part->runs) {
    if (!run->job.ended || is_compared_with(*ctx_.rules, *run)) continue;
    if (oldest == nullptr || run->course.last_any < oldest->course.last_any) oldest = run.get();
  }
  if (oldest == nullptr) return false;
  ++ctx_.stats.evicted_runs;
  decisions_.decide({Entry::What::forget, oldest->id, oldest->attempt, kNoRoster, 0, ctx_.now, {}});
  return true;
}

Run* Attempts::find_run(const core::FrameHeader& header) {
  const RunId id{header.run, header.shard};
  const auto found = ctx_.part->runs.find(id);
  if (found != ctx_.part->runs.end()) return found->second.get();
  // How many runs other partitions hold is not in this one's log: while replaying, entries say it.
  if (!ctx_.part->silent) {
    const bool room = ctx_.partitions.runs() < ctx_.options.config.max_runs || make_room();
    const bool refused = ctx_.part->refused.contains(id);
    if (!room && !refused)
      decisions_.decide({Entry::What::refuse, id, 0, kNoRoster, 0, ctx_.now, {}});
    if (room && refused) decisions_.decide({Entry::What::admit, id, 0, kNoRoster, 0, ctx_.now, {}});
  }
  if (ctx_.part->refused.contains(id)) {
    ++ctx_.stats.refused_runs;
    return nullptr;
  }
  auto run = std::make_unique<Run>();
  run->id = id;
  run->partition = ctx_.ref.partition;
  run->life = run->names.life = ctx_.part->cut.fresh_life();
  run->attempt = header.attempt;
  run->course.first_seen = ctx_.now;
  run->course.last_arrival = ctx_.now;
  run->course.last_any = ctx_.now;
  run->issues.progress.resize(ctx_.rules->all.size());
  ctx_.deadline.at_latest(add(ctx_.now, ctx_.options.config.join_grace));
  for (const auto& clock : ctx_.rules->clocks) {
    ctx_.deadline.at_latest(add(ctx_.now, clock.program->threshold));
  }
  return ctx_.part->runs.emplace(id, std::move(run)).first->second.get();
}

// What the launches of the run say of the process that sent the frame.
Launches::Standing Attempts::standing_of(Run& run, const core::FrameHeader& header,
                                         const ProcessId& process, const core::Lifecycle* body) {
  const bool over = run.job.ended && !run.job.lost;
  if (run.id.shard != 0 && over && is_progress(header.kind) && header.time > run.job.ended_at) {
    // Nobody sends behind the end: it is the next launch, of which the registry will say the same.
    (void)run.launches.stated(header.attempt, over);
    ends_.supersede(run, std::max(run.attempt + 1, header.attempt), std::nullopt);
    return Launches::Standing::current;
  }
  if ((header.flags & core::frame_flag::kUnsequenced) != 0 || run.id.shard != 0) {
    // Shards beyond the first see no starts: they go by what the frames state.
    return run.launches.stated(header.attempt, over);
  }
  if (body != nullptr && body->event == core::LifecycleEvent::start) {
    return run.launches.start(process, body->launch, header.attempt, over);
  }
  if (body != nullptr && body->event == core::LifecycleEvent::heartbeat) {
    return run.launches.heartbeat(process, body->launch, header.attempt, over);
  }
  const std::uint32_t known = run.workers.find(header.worker, header.rank);
  if (over || known == Workers::kNone || run.workers[known].incarnation != header.incarnation) {
    return run.launches.frame(process, header.attempt, over);
  }
  return Launches::Standing::current;
}

// False: the frame is of an attempt that is over.
bool Attempts::enter(Run& run, const core::FrameView& frame, const core::Lifecycle* body) {
  const core::FrameHeader& header = frame.header();
  if (header.rank == core::kNodeAgentRank) return !run.job.ended || run.job.lost;
  const ProcessId process{header.worker, header.rank, header.incarnation};
  const bool first = run.launches.attempt() == 0;
  const Launches::Standing standing = standing_of(run, header, process, body);
  switch (standing) {
    case Launches::Standing::opened:
      if (first) {
        run.attempt = run.launches.attempt();
      } else if (run.launches.attempt() > run.attempt) {  // else the registry has said so already
        ends_.supersede(run, run.launches.attempt(),
                        body == nullptr ? std::nullopt : body->continues_from);
      }
      break;
    case Launches::Standing::moved:
      ++ctx_.stats.moved_launches;
      break;
    case Launches::Standing::current:
      break;
    case Launches::Standing::late:
      ++ctx_.stats.late_launches;
      [[fallthrough]];
    case Launches::Standing::stale:
      ++ctx_.stats.stale_frames;
      if (is_progress(header.kind) && run.launches.first_of_unwatched(process)) {
        unwatched(run, header);
      }
      return false;
  }
  if (header.world_size != 0) run.world_size = header.world_size;
  return true;
}

void Attempts::unwatched(Run& run, const core::FrameHeader& header) {
  Finding finding;
  finding.observed = {"attempt", static_cast<double>(header.attempt)};
  finding.op = "<";
  finding.threshold = core::NamedNumber{"newest_attempt", static_cast<double>(run.attempt)};
  finding.titled("rank " + std::to_string(header.rank), Verb::is, "not judged");
  finding.summary = "Rank " + std::to_string(header.rank) + " of " +
                    (run.job.name.empty() ? "a run" : run.job.name) +
                    " sends data that belongs to an earlier launch: nothing of it is judged.";
  own_.raise(run, Operational::run_unwatched, kNoRoster, header.time, std::move(finding));
}

// Whether a worker's clock can be believed is seen against ours, which is not in the log.
void Attempts::check_clock(Run& run, std::uint32_t number, const core::FrameHeader& header) {
  const std::int64_t most = add(ctx_.now, ctx_.options.config.max_clock_skew);
  const bool ahead = header.time > most;
  if (ahead) ++ctx_.stats.future_times;
  if (ctx_.part->silent) return decisions_.replay_within(run, number);
  if (ctx_.options.record_time || ahead == run.workers[number].skewed) return;
  decisions_.decide({ahead ? Entry::What::skew : Entry::What::skew_over,
                     run.id,
                     run.attempt,
                     number,
                     0,
                     ctx_.now,
                     {}});
}

}  // namespace tocsin::rules

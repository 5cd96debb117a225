#include "rules/engine/jobs/attempts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "rules/engine/compare/other_runs.h"
#include "rules/engine/partition/describe.h"

namespace tocsin::rules {

// An ended run of this partition, or a family, makes room for another: the one heard of longest ago.
bool Attempts::make_room(const Turn& turn) {
  std::optional<Entry> oldest;
  std::int64_t heard = 0;
  const auto look = [&](const RunId& id, std::uint32_t attempt, std::int64_t last) {
    if (oldest && last >= heard) return;
    oldest = Entry{Entry::What::forget, id, attempt, kNoRoster, 0, turn.now, {}};
    heard = last;
  };
  for (const auto& [id, run] : turn.part.runs) {
    if (!run->job.ended || is_compared_with(turn.rules(), *run)) continue;
    look(id, run->attempt, run->course.last_any);
  }
  for (const auto& [uid, family] : turn.part.families) look(family.id(), 0, family.last_used);
  if (!oldest) return false;
  ++stats_.evicted_runs;
  decisions_.decide(turn, std::move(*oldest));
  return true;
}

Run* Attempts::find_run(const Turn& turn, const core::FrameHeader& header) {
  const RunId id{header.run, header.shard};
  const auto found = turn.part.runs.find(id);
  if (found != turn.part.runs.end()) return found->second.get();
  // How many runs other partitions hold is not in this one's log: while replaying, entries say it.
  if (!turn.part.silent) {
    const bool room = partitions_.runs() < options_.config.max_runs || make_room(turn);
    const bool refused = turn.part.refused.contains(id);
    if (!room && !refused)
      decisions_.decide(turn, {Entry::What::refuse, id, 0, kNoRoster, 0, turn.now, {}});
    if (room && refused)
      decisions_.decide(turn, {Entry::What::admit, id, 0, kNoRoster, 0, turn.now, {}});
  }
  if (turn.part.refused.contains(id)) {
    ++stats_.refused_runs;
    return nullptr;
  }
  auto run = std::make_unique<Run>();
  run->id = id;
  run->partition = turn.record.partition;
  run->life = run->names.life = turn.part.cut.fresh_life();
  run->attempt = header.attempt;
  run->course.first_seen = turn.now;
  run->course.last_arrival = turn.now;
  run->course.last_any = turn.now;
  run->issues.progress.resize(turn.rules().all.size());
  turn.part.deadline.at_latest(add(turn.now, options_.config.join_grace));
  for (const auto& clock : turn.rules().clocks) {
    turn.part.deadline.at_latest(add(turn.now, clock.program->threshold));
  }
  return turn.part.runs.emplace(id, std::move(run)).first->second.get();
}

// What the launches of the run say of the process that sent the frame.
Launches::Standing Attempts::standing_of(const Turn& turn, Run& run,
                                         const core::FrameHeader& header, const ProcessId& process,
                                         const core::Lifecycle* body) {
  const bool over = run.job.ended && !run.job.lost;
  if (run.id.shard != 0 && over && is_progress(header.kind) && header.time > run.job.ended_at) {
    // Nobody sends behind the end: it is the next launch, of which the registry will say the same.
    (void)run.launches.stated(header.attempt, over);
    ends_.supersede(turn, run, std::max(run.attempt + 1, header.attempt), std::nullopt);
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
bool Attempts::enter(const Turn& turn, Run& run, const core::FrameView& frame,
                     const core::Lifecycle* body) {
  const core::FrameHeader& header = frame.header();
  if (header.rank == core::kNodeAgentRank) return !run.job.ended || run.job.lost;
  const ProcessId process{header.worker, header.rank, header.incarnation};
  const bool first = run.launches.attempt() == 0;
  const Launches::Standing standing = standing_of(turn, run, header, process, body);
  switch (standing) {
    case Launches::Standing::opened:
      if (first) {
        run.attempt = run.launches.attempt();
      } else if (run.launches.attempt() > run.attempt) {  // else the registry has said so already
        ends_.supersede(turn, run, run.launches.attempt(),
                        body == nullptr ? std::nullopt : body->continues_from);
      }
      break;
    case Launches::Standing::moved:
      ++stats_.moved_launches;
      break;
    case Launches::Standing::current:
      break;
    case Launches::Standing::late:
      ++stats_.late_launches;
      [[fallthrough]];
    case Launches::Standing::stale:
      ++stats_.stale_frames;
      if (is_progress(header.kind) && run.launches.first_of_unwatched(process)) {
        unwatched(turn, run, header);
      }
      return false;
  }
  if (header.world_size != 0) run.world_size = header.world_size;
  return true;
}

void Attempts::unwatched(const Turn& turn, Run& run, const core::FrameHeader& header) {
  Finding finding;
  finding.observed = {"attempt", static_cast<double>(header.attempt)};
  finding.op = "<";
  finding.threshold = core::NamedNumber{"newest_attempt", static_cast<double>(run.attempt)};
  finding.titled("rank " + std::to_string(header.rank), Verb::is, "not judged");
  finding.summary = "Rank " + std::to_string(header.rank) + " of " +
                    (run.job.name.empty() ? "a run" : run.job.name) +
                    " sends data of an earlier launch. No rule judges it.";
  own_.raise(turn, run, Operational::run_unwatched, kNoRoster, header.time, std::move(finding));
}

// Whether a worker's clock can be believed is seen against ours, which is not in the log.
void Attempts::check_clock(const Turn& turn, Run& run, std::uint32_t number,
                           const core::FrameHeader& header) {
  const std::int64_t most = add(turn.now, options_.config.max_clock_skew);
  const bool ahead = header.time > most;
  if (ahead) ++stats_.future_times;
  if (turn.part.silent) return decisions_.replay_within(turn, run, number);
  if (options_.record_time || ahead == run.workers[number].skewed) return;
  decisions_.decide(turn, {ahead ? Entry::What::skew : Entry::What::skew_over,
                           run.id,
                           run.attempt,
                           number,
                           0,
                           turn.now,
                           {}});
}

}  // namespace tocsin::rules

#include "rules/engine/jobs/further_shards.h"

#include <string>
#include <utility>

#include "core/json.h"

namespace tocsin::rules {
namespace {

/// The bytes of such an entry.
struct Settled {
  std::uint32_t attempt = 0;
  bool over = false;
  std::int64_t ended_at = 0;  // UTC ns
  std::string outcome;
  std::string job;
  std::string platform;
  std::string platform_ref;  // JSON
  std::vector<std::pair<std::string, std::string>> labels;

  friend bool operator==(const Settled&, const Settled&) = default;
  template <typename A>
  friend void io(A& a, Settled& s) {
    io_all(a, s.attempt, s.over, s.ended_at, s.outcome, s.job, s.platform, s.platform_ref,
           s.labels);
  }
};

Settled settled(const core::JobEvent& event, bool over) {
  Settled out;
  out.attempt = event.run.attempt;
  out.over = over;
  out.ended_at = over ? core::nanoseconds(event.ended_at.value_or(event.time)) : 0;
  out.outcome = over ? event.outcome : std::string();
  out.job = event.run.job;
  out.platform = event.run.platform;
  out.platform_ref = core::to_json(event.run.ref, true);
  out.labels = event.labels.entries();
  return out;
}

// What is known here of the same.
Settled known(const Run& run) {
  Settled out;
  out.attempt = run.attempt;
  out.over = run.job.ended;
  out.ended_at = run.job.ended ? run.job.ended_at : 0;
  out.outcome = run.job.ended ? run.job.outcome : std::string();
  out.job = run.job.name;
  out.platform = run.job.platform;
  out.platform_ref = core::to_json(run.job.platform_ref, true);
  out.labels = run.job.labels;
  return out;
}

}  // namespace

std::vector<core::RunUid> FurtherShards::runs_of(const PartitionState& part) {
  std::vector<core::RunUid> out;
  if (part.silent) return out;
  for (const auto& [id, run] : part.runs) {
    if (id.shard != 0 && (out.empty() || out.back() != id.uid)) out.push_back(id.uid);
  }
  return out;
}

std::vector<Entry> FurtherShards::news(const Turn& turn, const core::JobEvent& event, bool live) {
  std::vector<Entry> out;
  for (auto at = turn.part.runs.lower_bound({event.run.uid, 1});
       at != turn.part.runs.end() && at->first.uid == event.run.uid; ++at) {
    const Run& run = *at->second;
    const bool older = event.run.attempt < run.attempt;
    const bool same = event.run.attempt == run.attempt;
    if (older || (same && run.job.ended)) continue;
    const bool quiet = live && distance(turn.now, run.course.last_arrival) >= kQuiet;
    // Of a launch that was over before this shard heard of it there is nothing to end.
    const bool over = event.phase == core::JobPhase::ended && same && quiet;
    const Settled fresh = settled(event, over);
    if (fresh == known(run)) continue;
    Entry entry;
    entry.what = Entry::What::settle;
    entry.run = at->first;
    entry.attempt = run.attempt;
    entry.now = turn.now;
    Writer writer(entry.rules);
    Settled bytes = fresh;
    io(writer, bytes);
    out.push_back(std::move(entry));
  }
  return out;
}

void FurtherShards::apply(const Turn& turn, const Entry& entry) {
  const auto found = turn.part.runs.find(entry.run);
  if (found == turn.part.runs.end()) return;
  Run& run = *found->second;
  Settled news;
  Loader loader(entry.rules);
  io(loader, news);
  if (!loader.ok() || news.attempt < run.attempt) return;
  turn.part.cut.touch_head(run);
  if (news.attempt > run.attempt) ends_.supersede(turn, run, news.attempt, std::nullopt);
  run.job.name = std::move(news.job);
  run.job.platform = std::move(news.platform);
  if (auto parsed = core::parse_json(news.platform_ref, core::kMaxFrameBytes)) {
    run.job.platform_ref = std::move(*parsed);
  }
  run.job.labels = std::move(news.labels);
  if (!news.over || run.job.ended) return;
  run.job.ended_at = news.ended_at;
  run.job.outcome = std::move(news.outcome);
  ends_.finish(turn, run, core::Resolution::job_ended, run.job.outcome == "lost");
}

}  // namespace tocsin::rules

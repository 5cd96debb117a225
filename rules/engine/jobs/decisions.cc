#include "rules/engine/jobs/decisions.h"

#include <algorithm>

#include "rules/engine/state/stored_rules.h"

namespace tocsin::rules {
namespace {

constexpr std::size_t kMaxRefused = 100'000;  // runs that are remembered as refused

}  // namespace

// What is decided by more than the records: applied and logged.
void Decisions::decide(Entry entry) {
  apply(entry);
  log(std::move(entry));
}

void Decisions::reload() {
  if (ctx_.part->next.empty()) {
    // Nothing was read here yet, so nothing may be written without the first positions
    // (PartitionState::first_index): the state before the first record is one of these rules.
    reload_.apply(ctx_.configured.table);
    if (!ctx_.part->first_index) return;
    Index empty;
    empty.slots = ctx_.part->cut.slots_per_part();
    empty.rules = stored_text(*ctx_.rules);
    ctx_.part->first_index = ctx_.part->cut.begin_empty(std::move(empty));
    return;
  }
  Entry entry;
  entry.what = Entry::What::reload;
  entry.now = ctx_.now;
  entry.rules = stored_text(*ctx_.configured.table);
  decide(std::move(entry));
}

void Decisions::apply(const Entry& entry) {
  carry_out(entry);
  book_.settle();
}

void Decisions::carry_out(const Entry& entry) {
  if (entry.what == Entry::What::reload)
    return reload_.apply(stored_table(entry.rules, ctx_.configured.table));
  if (entry.what == Entry::What::learn) return comparisons_.apply(entry);
  if (entry.what == Entry::What::settle) return further_.apply(entry);
  if (entry.what == Entry::What::refuse) {
    if (ctx_.part->refused.size() >= kMaxRefused)
      ctx_.part->refused.erase(ctx_.part->refused.begin());
    ctx_.part->refused.insert(entry.run);
    own_.raise_plain(Operational::run_unwatched, entry.run.uid, entry.now,
                     "Run " + core::to_text(entry.run.uid) +
                         " is not watched: " + std::to_string(ctx_.options.config.max_runs) +
                         " runs are followed already.");
    return;
  }
  if (entry.what == Entry::What::admit) {
    ctx_.part->refused.erase(entry.run);
    return;
  }
  const auto found = ctx_.part->runs.find(entry.run);
  if (found == ctx_.part->runs.end() || found->second->attempt != entry.attempt) return;
  ctx_.part->cut.touch_head(*found->second);
  if (entry.what != Entry::What::forget) return apply_run(entry, *found->second);
  ends_.finish(*found->second, core::Resolution::expired);
  book_.resolve_all(*found->second, core::Resolution::expired);
  ctx_.part->cut.retire(std::move(found->second));
  ctx_.part->runs.erase(found);
}

void Decisions::apply_run(const Entry& entry, Run& run) {
  if (run.job.ended) return;  // by an entry of the same tick
  switch (entry.what) {
    case Entry::What::grace_over:
      run.course.grace_over = true;
      steps_.advance(run);
      return ends_.check_end(run);
    case Entry::What::idle:
      if (entry.worker >= run.workers.size()) return;
      ctx_.part->cut.touch_worker(run, entry.worker);
      run.workers[entry.worker].idle = true;
      run.workers.sync(entry.worker);
      return steps_.advance(run);
    case Entry::What::silence:
      return silence_.fire(run, entry);
    case Entry::What::lost:
      run.job.ended_at = std::max(run.job.ended_at, run.course.last_time);
      return ends_.finish(run, core::Resolution::job_ended, true);
    case Entry::What::skew:
    case Entry::What::skew_over: {
      if (entry.worker >= run.workers.size()) return;
      ctx_.part->cut.touch_worker(run, entry.worker);
      run.workers[entry.worker].skewed = entry.what == Entry::What::skew;
      if (entry.what == Entry::What::skew_over) {
        return own_.lower(run, Operational::clock_skew, entry.worker, entry.now);
      }
      Finding finding;
      finding.titled("clock of " + run.workers[entry.worker].name, Verb::is, "ahead");
      finding.summary = "The clock of " + run.workers[entry.worker].name + " is more than " +
                        core::to_text(ctx_.options.config.max_clock_skew) + " ahead of ours.";
      return own_.raise(run, Operational::clock_skew, entry.worker, entry.now, std::move(finding));
    }
    case Entry::What::forget:
    case Entry::What::refuse:
    case Entry::What::admit:
    case Entry::What::reload:
    case Entry::What::learn:
    case Entry::What::settle:
      return;
  }
}

void Decisions::log(Entry entry) {
  if (ctx_.part->silent || ctx_.options.record_time) return;
  entry.next = {ctx_.part->next.begin(), ctx_.part->next.end()};
  std::string bytes;
  Writer writer(bytes);
  io(writer, entry);
  ctx_.part->output.log.push_back(
      {ctx_.part->number, log_key(ctx_.part->log_next++), seal(bytes, 0)});
}

// How far the input is beyond what it was when the entry was made: < 0 not there yet, 0 there.
int Decisions::beyond(const Entry& entry) const {
  int out = 0;
  for (const auto& [stream, position] : entry.next) {
    const auto found = ctx_.part->next.find(stream);
    if (found == ctx_.part->next.end() || found->second < position) return -1;
    if (found->second > position) out = 1;
  }
  return out;
}

void Decisions::replay_one() {
  const Entry entry = std::move(ctx_.part->replay.front());
  ctx_.part->replay.pop_front();
  const std::int64_t arrival = std::exchange(ctx_.now, entry.now);
  apply(entry);
  ctx_.now = arrival;
}

void Decisions::replay_entries() {
  while (!ctx_.part->replay.empty()) {
    const int past = beyond(ctx_.part->replay.front());
    // One that was made in the middle of a record waits for that place: see replay_within.
    if (past < 0 || (past == 0 && ctx_.part->replay.front().within_record())) return;
    replay_one();
  }
}

void Decisions::replay_within(const Run& run, std::uint32_t worker) {
  if (ctx_.part->replay.empty()) return;
  const Entry& next = ctx_.part->replay.front();
  if (next.within_record() && next.run == run.id && next.worker == worker && beyond(next) == 0) {
    replay_one();
  }
}

}  // namespace tocsin::rules

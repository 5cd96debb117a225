#include "rules/engine/jobs/decisions.h"

#include <algorithm>

#include "rules/engine/state/stored_rules.h"

namespace tocsin::rules {
namespace {

constexpr std::size_t kMaxRefused = 100'000;  // runs that are remembered as refused

}  // namespace

// What is decided by more than the records: applied and logged.
void Decisions::decide(const Turn& turn, Entry entry) {
  apply(turn, entry);
  log(turn, std::move(entry));
}

void Decisions::reload(const Turn& turn) {
  if (turn.part.next.empty()) {
    // Nothing was read here yet, so nothing may be written without the first positions
    // (PartitionState::first_index): the state before the first record is one of these rules.
    reload_.apply(turn, configured_.table);
    if (!turn.part.first_index) return;
    Index empty;
    empty.slots = turn.part.cut.slots_per_part();
    empty.rules = stored_text(turn.rules());
    turn.part.first_index = turn.part.cut.begin_empty(std::move(empty));
    return;
  }
  Entry entry;
  entry.what = Entry::What::reload;
  entry.now = turn.now;
  entry.rules = stored_text(*configured_.table);
  decide(turn, std::move(entry));
}

void Decisions::apply(const Turn& turn, const Entry& entry) {
  carry_out(turn, entry);
  book_.settle(turn);
}

void Decisions::carry_out(const Turn& turn, const Entry& entry) {
  if (entry.what == Entry::What::reload)
    return reload_.apply(turn, stored_table(entry.rules, configured_.table));
  if (entry.what == Entry::What::learn) return comparisons_.apply(turn, entry);
  if (entry.what == Entry::What::settle) return further_.apply(turn, entry);
  if (entry.what == Entry::What::refuse) {
    if (turn.part.refused.size() >= kMaxRefused) turn.part.refused.erase(turn.part.refused.begin());
    turn.part.refused.insert(entry.run);
    own_.raise_plain(turn, Operational::run_unwatched, entry.run.uid, entry.now,
                     "Run " + core::to_text(entry.run.uid) + " is not watched: " +
                         std::to_string(options_.config.max_runs) + " runs are followed already.");
    return;
  }
  if (entry.what == Entry::What::admit) {
    turn.part.refused.erase(entry.run);
    return;
  }
  const auto found = turn.part.runs.find(entry.run);
  if (found == turn.part.runs.end()) {
    if (entry.what == Entry::What::forget) forget_family(turn, entry);
    return;
  }
  if (found->second->attempt != entry.attempt) return;
  turn.part.cut.touch_head(*found->second);
  if (entry.what != Entry::What::forget) return apply_run(turn, entry, *found->second);
  ends_.finish(turn, *found->second, core::Resolution::expired);
  book_.resolve_all(turn, *found->second, core::Resolution::expired);
  turn.part.cut.retire(std::move(found->second));
  turn.part.runs.erase(found);
}

void Decisions::forget_family(const Turn& turn, const Entry& entry) {
  if (turn.part.families.find(entry.run.uid) == nullptr) return;
  turn.part.cut.retire(turn.part.families.take(entry.run.uid));
}

void Decisions::apply_run(const Turn& turn, const Entry& entry, Run& run) {
  if (run.job.ended) return;  // by an entry of the same tick
  switch (entry.what) {
    case Entry::What::grace_over:
      run.course.grace_over = true;
      steps_.advance(turn, run);
      return ends_.check_end(turn, run);
    case Entry::What::idle:
      if (entry.worker >= run.workers.size()) return;
      turn.part.cut.touch_worker(run, entry.worker);
      run.workers[entry.worker].idle = true;
      run.workers.sync(entry.worker);
      return steps_.advance(turn, run);
    case Entry::What::silence:
      return silence_.fire(turn, run, entry);
    case Entry::What::lost:
      run.job.ended_at = std::max(run.job.ended_at, run.course.last_time);
      return ends_.finish(turn, run, core::Resolution::job_ended, true);
    case Entry::What::skew:
    case Entry::What::skew_over: {
      if (entry.worker >= run.workers.size()) return;
      turn.part.cut.touch_worker(run, entry.worker);
      run.workers[entry.worker].skewed = entry.what == Entry::What::skew;
      if (entry.what == Entry::What::skew_over) {
        return own_.lower(turn, run, Operational::clock_skew, entry.worker, entry.now);
      }
      Finding finding;
      finding.titled("clock of " + run.workers[entry.worker].name, Verb::is, "ahead");
      finding.summary = "The clock of " + run.workers[entry.worker].name + " is more than " +
                        core::to_text(options_.config.max_clock_skew) + " ahead of ours.";
      return own_.raise(turn, run, Operational::clock_skew, entry.worker, entry.now,
                        std::move(finding));
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

void Decisions::log(const Turn& turn, Entry entry) {
  if (turn.part.silent || options_.record_time) return;
  entry.next = {turn.part.next.begin(), turn.part.next.end()};
  std::string bytes;
  Writer writer(bytes);
  io(writer, entry);
  turn.part.output.log.push_back({turn.part.number, log_key(turn.part.log_next++), seal(bytes, 0)});
}

// How far the input is beyond what it was when the entry was made: < 0 not there yet, 0 there.
int Decisions::beyond(const Turn& turn, const Entry& entry) const {
  int out = 0;
  for (const auto& [stream, position] : entry.next) {
    const auto found = turn.part.next.find(stream);
    if (found == turn.part.next.end() || found->second < position) return -1;
    if (found->second > position) out = 1;
  }
  return out;
}

void Decisions::replay_one(const Turn& turn) {
  const Entry entry = std::move(turn.part.replay.front());
  turn.part.replay.pop_front();
  apply(turn.as_of(entry.now), entry);
}

void Decisions::replay_entries(const Turn& turn) {
  while (!turn.part.replay.empty()) {
    const int past = beyond(turn, turn.part.replay.front());
    // One that was made in the middle of a record waits for that place: see replay_within.
    if (past < 0 || (past == 0 && turn.part.replay.front().within_record())) return;
    replay_one(turn);
  }
}

void Decisions::replay_within(const Turn& turn, const Run& run, std::uint32_t worker) {
  if (turn.part.replay.empty()) return;
  const Entry& next = turn.part.replay.front();
  if (next.within_record() && next.run == run.id && next.worker == worker &&
      beyond(turn, next) == 0) {
    replay_one(turn);
  }
}

}  // namespace tocsin::rules

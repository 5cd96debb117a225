#include "rules/engine/units/step_book.h"
#include "rules/engine/partition/describe.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace tocsin::rules {
namespace {

constexpr std::size_t kMaxPending = 1U << 16;  // values that wait for their step, per run,
constexpr std::size_t kMaxPerWorker = 64;      // or as many per worker, if that is more

constexpr std::uint64_t kNoValue = 0;  // name of what stands for an ended step of a pass

bool by_passes(core::Mode mode) { return mode == core::Mode::eval; }

// Place of a value in the order of training. What a worker evaluates stands behind the last step of
// training that it has ended; workers that skip an evaluation do not disturb that.
auto order(const PendingScalar& item) {
  const bool train = item.mode == core::Mode::train;
  const std::int64_t behind = train ? item.step : item.after_train;
  return std::make_tuple(behind, train ? 0 : 1, item.mode, by_passes(item.mode) ? item.pass : 0U,
                         item.step, item.name);
}

bool same_group(const PendingScalar& a, const PendingScalar& b) {
  if (a.mode != b.mode) return false;
  if (by_passes(a.mode)) return a.pass == b.pass && a.after_train == b.after_train;
  return a.step == b.step;
}

// True when the rule takes part of a step's or pass's values only: it is judged on its own.
bool picks(const Common& common, core::Mode mode) {
  return !common.workers.empty() ||
         (by_passes(mode) && (common.start_step > 0 || common.end_step.has_value()));
}

// Whose steps are those of training, as Run::released_at says it.
enum Training : std::int64_t { kNobody, kModeTrain, kModeGlobal };

// `by`: closed steps per mode, the oldest open pass, everything, Training (Run::released_at).
bool ready(const PendingScalar& item, const std::array<std::int64_t, kModes + 3>& by) {
  if (by[5] != 0) return true;
  const bool trains = by[6] != kNobody;
  const core::Mode training = by[6] == kModeGlobal ? core::Mode::global : core::Mode::train;
  const std::int64_t trained = by[at(training)];
  const std::int64_t behind = by[6] == kModeGlobal ? item.after_global : item.after_train;
  if (item.mode == training) return item.step <= trained;
  // A pass is over when everybody has ended a later step of training, or evaluates a later one:
  // nobody can still add to it.
  if (by_passes(item.mode)) return (trains && trained > behind) || item.pass < by[4];
  return item.step <= by[at(item.mode)] && (!trains || trained >= behind);
}

}  // namespace

void StepBook::add(const Turn& turn, Run& run, std::uint32_t worker,
                   const core::FrameHeader& header, std::int64_t step, std::int64_t global_step,
                   std::int64_t time, std::uint64_t name, double value, core::Role role) {
  if (turn.rules().series.empty()) return;
  if (step <= run.steps.closed[at(header.mode)]) {
    ++stats_.late_rows;
    return;
  }
  const Worker& from = run.workers[worker];
  run.steps.pending.push_back({header.mode, header.pass, step, global_step, time,
                               from.mark[at(core::Mode::train)], from.mark[at(core::Mode::global)],
                               name, value, turn.record.offset, worker, role});
  run.steps.release_due =
      run.steps.release_due || ready(run.steps.pending.back(), run.steps.released_at);
  if (run.steps.pending.size() > std::max(kMaxPending, kMaxPerWorker * run.workers.size())) {
    ++stats_.open_steps_closed;
    advance(turn, run, true);
  }
}

void StepBook::ended(const Turn& turn, Run& run, std::uint32_t worker,
                     const core::FrameHeader& header, std::int64_t step, std::int64_t global_step,
                     std::int64_t time) {
  if (!by_passes(header.mode) || turn.rules().series.empty()) return;
  if (step <= run.steps.closed[at(header.mode)]) return;
  const std::int64_t after = run.workers[worker].mark[at(core::Mode::train)];
  const auto [place, fresh] = run.steps.passes.try_emplace(PassKey{worker, header.pass, after});
  PendingScalar& mark = place->second;
  if (fresh) {
    mark = {header.mode,
            header.pass,
            step,
            global_step,
            time,
            after,
            run.workers[worker].mark[at(core::Mode::global)],
            kNoValue,
            0,
            turn.record.offset,
            worker,
            core::Role::other};
    run.steps.release_due = run.steps.release_due || ready(mark, run.steps.released_at);
  }
  mark.step = std::max(mark.step, step);
  mark.global_step = std::max(mark.global_step, global_step);
  mark.time = std::max(mark.time, time);
}

void StepBook::advance(const Turn& turn, Run& run, bool everything) {
  const std::array<std::int64_t, kModes> before = run.steps.told_closed;
  advance_modes(turn, run, everything);
  // Those that follow other rules come when these have said what they say of the steps.
  for (const core::Mode mode :
       {core::Mode::global, core::Mode::train, core::Mode::eval, core::Mode::predict}) {
    const std::int64_t closed = run.steps.told_closed[at(mode)];
    if (closed > before[at(mode)]) evaluations_.feed_settled(turn, run, mode, closed);
  }
}

namespace {

// Rules that average over workers wait for all of them, in mode global as in train.
bool joined_in(const Run& run, core::Mode mode) {
  return run.world_size == 0 || run.workers.clock().trainers(at(mode)) >= run.world_size ||
         run.course.grace_over;
}

// `all`: nobody is waited for. `everything`: nor for workers that have not joined.
void close_modes(Run& run, bool all, bool everything) {
  const StepClock& clock = run.workers.clock();
  for (const core::Mode mode : {core::Mode::global, core::Mode::train, core::Mode::predict}) {
    const std::size_t m = at(mode);
    const std::int64_t reached = !clock.waiting(m) || all ? clock.newest(m) : clock.watermark(m);
    const bool first = run.steps.closed[m] == kNever;
    if (mode != core::Mode::predict && first && !joined_in(run, mode) && !everything) continue;
    run.steps.closed[m] = std::max(run.steps.closed[m], reached);
  }
}

// A run without mode train trains in mode global, if in any.
Training training_of(const StepClock& clock, bool trains) {
  if (trains) return kModeTrain;
  return clock.newest(at(core::Mode::global)) != kNever ? kModeGlobal : kNobody;
}

}  // namespace

void StepBook::advance_modes(const Turn& turn, Run& run, bool everything) {
  if (turn.worker < run.workers.size()) run.workers.sync(turn.worker);
  const StepClock& clock = run.workers.clock();
  const bool joined = joined_in(run, core::Mode::train) || joined_in(run, core::Mode::global);
  const bool trains = (run.course.seen_modes & mode_bit(core::Mode::train)) != 0;
  const bool all = everything || (!clock.anyone() && joined);
  close_modes(run, all, everything);
  tell_closed(turn, run, trains, all);
  if (run.steps.pending.empty() && run.steps.passes.empty()) {
    run.steps.partial.clear();
    return;
  }
  const Training training = training_of(clock, trains);
  constexpr std::size_t kEval = at(core::Mode::eval);
  const bool by_pass =
      training == kNobody || (training == kModeGlobal && joined && clock.everyone(kEval));
  // Readiness depends on nothing else: as long as this stands, only new values_ can be ready.
  const std::int64_t pass = by_pass ? clock.open_pass(kEval) : 0;
  const std::array<std::int64_t, kModes + 3> by{run.steps.closed[0],
                                                run.steps.closed[1],
                                                run.steps.closed[2],
                                                run.steps.closed[3],
                                                pass,
                                                all ? 1 : 0,
                                                training};
  if (by == run.steps.released_at && !run.steps.release_due) return;
  run.steps.released_at = by;
  run.steps.release_due = false;
  gather_ready(run);
  if (items_.empty()) return;
  if (training == kModeGlobal) {
    for (PendingScalar& item : items_) {
      item.after_train = item.mode == core::Mode::global ? item.step : item.after_global;
    }
  }
  release(turn, run, items_);
}

// Moves what is ready from the run into items_.
void StepBook::gather_ready(Run& run) {
  items_.clear();
  auto rest = run.steps.pending.begin();
  for (const PendingScalar& item : run.steps.pending) {
    if (ready(item, run.steps.released_at)) {
      items_.push_back(item);
    } else {
      *rest++ = item;
    }
  }
  run.steps.pending.erase(rest, run.steps.pending.end());
  for (auto one = run.steps.passes.begin(); one != run.steps.passes.end();) {
    if (!ready(one->second, run.steps.released_at)) {
      ++one;
      continue;
    }
    items_.push_back(one->second);
    one = run.steps.passes.erase(one);
  }
}

// What evaluators keep until nobody can add to it. In a run that trains, evaluations are over with
// the next train step (Evaluator::on_closed).
void StepBook::tell_closed(const Turn& turn, Run& run, bool trains, bool all) {
  if (turn.rules().takers_of(input::kClosedSteps).empty()) return;
  for (const core::Mode mode :
       {core::Mode::global, core::Mode::train, core::Mode::eval, core::Mode::predict}) {
    const std::size_t m = at(mode);
    const bool passes = mode == core::Mode::eval || mode == core::Mode::predict;
    if (passes && trains) continue;
    // The first step waits for everybody, as in advance().
    const bool joined = run.world_size == 0 || run.workers.clock().trainers(m) >= run.world_size ||
                        run.course.grace_over || all;
    if (run.steps.told_closed[m] == kNever && !joined) continue;
    std::int64_t closed = run.steps.closed[m];
    if (mode == core::Mode::eval) {
      closed = !run.workers.clock().waiting(m) || all ? run.workers.clock().newest(m)
                                                      : run.workers.clock().watermark(m);
    }
    if (closed <= run.steps.told_closed[m]) continue;
    run.steps.told_closed[m] = closed;
    evaluations_.feed_closed(turn, run, mode, closed);
  }
}

void StepBook::release(const Turn& turn, Run& run, std::vector<PendingScalar>& items) {
  const auto before = [&](const PendingScalar& a, const PendingScalar& b) {
    const auto left = order(a);
    const auto right = order(b);
    if (left != right) return left < right;
    return run.workers[a.worker].rank < run.workers[b.worker].rank;
  };
  // A single worker's steps come in order, and a stable sort would ask for memory to find that out.
  if (!std::is_sorted(items.begin(), items.end(), before)) {
    std::stable_sort(items.begin(), items.end(), before);
  }
  for (auto first = items.begin(); first != items.end();) {
    const auto last = std::find_if(
        first, items.end(), [&](const PendingScalar& item) { return !same_group(*first, item); });
    const std::span group(&*first, static_cast<std::size_t>(last - first));
    judge_group(turn, run, group, {});
    for (std::size_t s = 0; s < turn.rules().series.size(); ++s) {
      const Common& common = turn.rules().series[s].program->common;
      if (!picks(common, group.front().mode)) continue;
      // A rule that looks at some workers or steps only averages over those.
      std::vector<PendingScalar>& chosen = chosen_items_;
      chosen.clear();
      for (PendingScalar item : group) {
        if (item.name == kNoValue && common.end_step) {
          item.step = std::min(item.step, *common.end_step - 1);  // so far it has come, at least
        }
        if (wants_worker(common, run.workers[item.worker]) && common.wants_step(item.step)) {
          chosen.push_back(item);
        }
      }
      if (!chosen.empty()) judge_group(turn, run, chosen, s);
    }
    run.steps.partial.erase(run.steps.partial.begin(),
                            run.steps.partial.upper_bound(
                                {static_cast<std::uint8_t>(group.back().mode), group.back().step}));
    first = last;
  }
}

void StepBook::judge_group(const Turn& turn, Run& run, std::span<const PendingScalar> items,
                           std::optional<std::size_t> only) {
  if (by_passes(items.front().mode)) {
    judge_pass(turn, run, items, only);
  } else {
    judge_step(turn, run, items, only);
  }
}

void StepBook::judge_step(const Turn& turn, Run& run, std::span<const PendingScalar> items,
                          std::optional<std::size_t> only) {
  const PendingScalar& head = items.front();
  StepPoint point;
  point.mode = head.mode;
  point.step = head.step;
  point.train_step = head.mode == core::Mode::train ? head.step : head.after_train;
  Place place;
  place.first_offset = kForever;
  values_.clear();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const PendingScalar& item = items[i];
    point.global_step = std::max(point.global_step, item.global_step);
    point.time = std::max(point.time, item.time);
    place.first_offset = std::min(place.first_offset, item.offset);
    place.last_offset = std::max(place.last_offset, item.offset);
    if (values_.empty() || values_.back().name != item.name) {
      values_.push_back({item.name, {}, item.role, 0, 0, std::nan("")});
    }
    values_.back().value += item.value;
    ++values_.back().workers;
  }
  for (SeriesValue& value : values_) {
    value.value /= value.workers;
    if (std::isfinite(value.value)) value.finite = value.value;
  }
  place.step = head.step;
  run_series(turn, run, point, false, place, only);
  run.steps.closed[at(head.mode)] = std::max(run.steps.closed[at(head.mode)], head.step);
}

void StepBook::judge_pass(const Turn& turn, Run& run, std::span<const PendingScalar> items,
                          std::optional<std::size_t> only) {
  // Items come by step, then name, then rank: means over workers per step, then over steps.
  struct Mean {
    std::uint64_t name;
    core::Role role;
    double plain = 0;
    double finite = 0;
    std::uint32_t all_steps = 0;
    std::uint32_t steps = 0;  // of finite values_
    std::uint32_t workers = 0;
  };
  std::vector<Mean> means;
  pass_.clear();
  StepPoint point;
  point.mode = items.front().mode;
  point.step = kNever;
  point.train_step = items.front().after_train;
  Place place;
  place.first_offset = kForever;
  const bool empty = std::all_of(items.begin(), items.end(),
                                 [](const PendingScalar& item) { return item.name == kNoValue; });
  for (std::size_t i = 0; i < items.size();) {
    const PendingScalar& head = items[i];
    double sum = 0;
    std::uint32_t workers = 0;
    point.step = std::max(point.step, head.step);
    for (; i < items.size() && items[i].step == head.step && items[i].name == head.name; ++i) {
      point.global_step = std::max(point.global_step, items[i].global_step);
      if (head.name == kNoValue && !empty) continue;  // the time is that of values
      sum += items[i].value;
      ++workers;
      point.time = std::max(point.time, items[i].time);
      place.first_offset = std::min(place.first_offset, items[i].offset);
      place.last_offset = std::max(place.last_offset, items[i].offset);
    }
    if (head.name == kNoValue) continue;
    const double mean = sum / workers;
    pass_.push_back({head.step, head.name, mean});
    const auto known = std::find_if(means.begin(), means.end(),
                                    [&](const Mean& one) { return one.name == head.name; });
    Mean& into = known == means.end() ? means.emplace_back(Mean{head.name, head.role}) : *known;
    into.workers = std::max(into.workers, workers);
    into.plain += mean;
    ++into.all_steps;
    if (!std::isfinite(mean)) continue;
    into.finite += mean;
    ++into.steps;
  }
  std::sort(means.begin(), means.end(),
            [](const Mean& a, const Mean& b) { return a.name < b.name; });
  values_.clear();
  for (const Mean& mean : means) {
    const double finite = mean.steps == 0 ? std::nan("") : mean.finite / mean.steps;
    values_.push_back(
        {mean.name, {}, mean.role, mean.plain / mean.all_steps, mean.workers, finite});
  }
  point.pass = pass_;
  run_series(turn, run, point, true, place, only);
  run.steps.closed[at(point.mode)] = std::max(run.steps.closed[at(point.mode)], point.step);
}

/// What the values of the step are called, once for all rules.
void StepBook::read_names(const Run& run) {
  names_.resize(std::max(names_.size(), values_.size()));
  for (std::size_t i = 0; i < values_.size(); ++i) {
    SeriesValue& value = values_[i];
    const Name* known = names_[i].known = run.names.table.find(value.name);
    if (known == nullptr) {
      names_[i].made = name_of(run, value.name);
      value.text = names_[i].made;
      continue;
    }
    value.text = known->text;
    value.direction = known->direction;
  }
}

void StepBook::run_series(const Turn& turn, Run& run, const StepPoint& point, bool pass,
                          const Place& place, std::optional<std::size_t> only) {
  Place here = place;
  const auto partial = run.steps.partial.find({static_cast<std::uint8_t>(point.mode), point.step});
  if (partial != run.steps.partial.end()) {
    here.partial = true;
    here.missing_ranks = partial->second;
  }
  for (const Worker& worker : run.workers) {
    if (worker.idle && !worker.gone && (worker.active & mode_bit(point.mode)) != 0) {
      here.partial = true;
      here.missing_ranks.push_back(worker.rank);
    }
  }
  std::sort(here.missing_ranks.begin(), here.missing_ranks.end());
  read_names(run);
  std::vector<SeriesValue>& chosen = chosen_;
  for (std::size_t s = 0; s < turn.rules().series.size(); ++s) {
    const Program& program = *turn.rules().series[s].program;
    if (only ? *only != s : picks(program.common, point.mode)) continue;
    if (!program.common.wants_mode(point.mode) || !program.common.wants_step(point.step)) continue;
    chosen.clear();
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (program.selection.matches(values_[i].role, names_[i].known) != Match::yes) continue;
      chosen.push_back(values_[i]);
    }
    if (chosen.empty() && !(pass && program.every_pass())) continue;
    StepPoint seen = point;
    seen.values = chosen;
    evaluations_.feed(
        turn, run, turn.rules().series[s].evaluator,
        [&](Evaluator& one, Scope& scope) { one.on_values(seen, pass, here, scope); });
  }
}

}  // namespace tocsin::rules

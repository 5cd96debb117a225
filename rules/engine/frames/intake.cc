#include "rules/engine/frames/intake.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/collections.h"
#include "rules/contract/together.h"

namespace tocsin::rules {
namespace {

bool trains(core::Mode mode) { return mode == core::Mode::train || mode == core::Mode::global; }

std::uint64_t loss_scale_hash() {
  static const std::uint64_t kHash = core::name_hash("loss_scale");
  return kHash;
}

std::uint64_t learning_rate_hash() {
  static const std::uint64_t kHash = core::name_hash("learning_rate");
  return kHash;
}

// JSON has no passes.
double epoch_of(const Worker& worker, const core::FrameHeader& header) {
  return worker.unsequenced ? std::numeric_limits<double>::quiet_NaN() : header.pass;
}

// Whether these units have these names, and were all last seen at an earlier step. Without comparisons:
// what an earlier step lacks is below 0. (Of kNever it need not be, then they are found row by row once.)
TOCSIN_TOGETHER bool are_next(const Slot* units, const core::ColumnView<std::uint64_t>& names,
                              std::size_t rows, std::int64_t step) {
  std::uint64_t others = 0;
  std::uint64_t earlier = ~std::uint64_t{0};  // its sign: all of them
  for (std::size_t i = 0; i < rows; ++i) {
    others |= units[i].name ^ names[i];
    earlier &= static_cast<std::uint64_t>(units[i].last_step) - static_cast<std::uint64_t>(step);
  }
  return others == 0 && earlier >> 63 != 0;
}

}  // namespace

void Intake::on_summary(const Turn& turn, Run& run, std::uint32_t worker,
                        const core::FrameView& frame) {
  const core::FrameHeader& header = frame.header();
  Roster& here = units_.roster(turn, run, worker, header.mode, false);
  const auto roster_number = run.rosters.number_of(here);
  turn.part.cut.touch_roster(run, roster_number);
  const std::size_t rows = frame.rows();
  if (frame.header().row_stride < core::summary_column::columns * core::kColumnBytes) return;
  run.workers[worker].seen[at(header.mode)] =
      std::max(run.workers[worker].seen[at(header.mode)], header.step);
  if (!known_units(turn, run, here, frame)) find_units(turn, run, here, frame);
  if (here.wanted.size() < here.slots.size() ||
      (here.unresolved && here.names_version != run.names.version)) {
    units_.resolve(turn, run, here);
  }
  sparse_.clear();
  vectors_.clear();
  if (header.body_length > static_cast<std::size_t>(header.row_stride) * rows) {
    frame.sparse_columns([this](const core::SparseColumn& column) { sparse_.push_back(column); });
    frame.vectors([this](const core::SparseVector& vector) { vectors_.push_back(vector); });
  }
  if (here.losses) {
    for (std::size_t i = 0; i < rows; ++i) {
      if (slots_[i] == RowBatch::kSkip || here.wanted[slots_[i]] == Match::no) continue;
      const core::SummaryRow row = frame.summary(i);
      steps_.add(turn, run, worker, header, header.step, header.global_step, header.time, row.name,
                 row.count == 0 ? std::nan("") : row.mean(), core::meta::role(row.meta));
    }
  }
  RowBatch batch;
  batch.columns = frame.body().data();
  batch.rows = rows;
  batch.slots = slots_;
  batch.first = first_slot_;
  batch.shapes = units_.shapes(run, here);
  batch.mode = header.mode;
  batch.step = header.step;
  batch.time = header.time;
  batch.world_size = header.world_size;
  batch.epoch = epoch_of(run.workers[worker], header);
  batch.loss_scale = run.workers[worker].loss_scale;
  batch.set_learning_rate(run.workers[worker].learning_rate, run.workers[worker].max_learning_rate);
  batch.names = &run.names.table;
  batch.worker = &run.workers[worker];
  batch.losses = &run.workers[worker].losses;
  batch.sparse = sparse_;
  batch.vectors = vectors_;
  Place place = at_step(header.mode, header.step, header.global_step, header.time);
  place.partial = run.workers[worker].gap;
  rows_.judge(turn, run, roster_number, batch, place);
  if (turn.rules().takers_of(input::kRows).empty()) return;
  WorkerRows taken;
  taken.worker = worker;
  taken.mode = header.mode;
  taken.step = header.step;
  taken.global_step = header.global_step;
  taken.time = header.time;
  taken.epoch = batch.epoch;
  taken.frame = &frame;
  evaluations_.feed_rows(turn, run, roster_number, taken, slots_, first_slot_);
}

// Of the unit of a frame's first row: behind the frame before in most cases, or at the beginning.
std::uint32_t Intake::place_of(const Roster& here, std::uint64_t name) const {
  if (here.slots[0].name == name) return 0;
  const std::size_t next = std::size_t{first_slot_} + slots_.size();
  if (next < here.slots.size() && here.slots[next].name == name) {
    return static_cast<std::uint32_t>(next);
  }
  return here.index.find(name);
}

// A worker sends its tensors in one order: most often all rows are units that stand side by side,
// each at a later step than before. False: not this time.
bool Intake::known_units(const Turn& turn, Run& run, Roster& here, const core::FrameView& frame) {
  const std::size_t rows = frame.rows();
  const std::int64_t step = frame.header().step;
  const auto names = frame.column<std::uint64_t>(core::summary_column::name);
  if (rows == 0 || here.slots.empty()) return false;
  const std::uint32_t first = place_of(here, names[0]);
  if (first == FlatIndex::kNone || rows > here.slots.size() - first) return false;
  Slot* const units = here.slots.data() + first;
  if (step < 0) return false;
  if (!are_next(units, names, rows, step)) return false;
  const auto end = static_cast<std::uint32_t>(first + rows);
  turn.part.cut.touch_slots(run, run.rosters.number_of(here), first, end);
  for (std::size_t i = 0; i < rows; ++i) units[i].last_step = step;
  if (first_slot_ == first && slots_.size() == rows) return true;  // they stand there already
  slots_.resize(rows);
  std::iota(slots_.begin(), slots_.end(), first);
  first_slot_ = first;
  return true;
}

// Row by row: new units, gaps, other orders, repeated rows.
void Intake::find_units(const Turn& turn, Run& run, Roster& here, const core::FrameView& frame) {
  const std::size_t rows = frame.rows();
  const std::int64_t step = frame.header().step;
  const std::uint32_t roster_number = run.rosters.number_of(here);
  const auto names = frame.column<std::uint64_t>(core::summary_column::name);
  const auto metas = frame.column<std::uint64_t>(core::summary_column::meta);
  slots_.resize(rows);
  first_slot_ = RowBatch::kSkip;
  std::uint32_t guess = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    guess = units_.slot(turn, run, here, names[i], metas[i], guess);
    slots_[i] = guess;
    if (guess == RowBatch::kSkip) {
      guess = 0;
      continue;
    }
    turn.part.cut.touch_slot(run, roster_number, guess);
    Slot& unit = here.slots[guess];
    if (step <= unit.last_step) {
      slots_[i] = RowBatch::kSkip;
      ++stats_.duplicate_rows;
    } else {
      unit.last_step = step;
    }
    ++guess;
  }
}

/// A row of a frame of scalars.
struct Intake::Scalar {
  std::uint64_t name = 0;
  std::uint64_t meta = 0;
  std::int64_t step = 0;
  std::int64_t global_step = 0;
  std::int64_t time = 0;
  double value = 0;

  [[nodiscard]] core::Role role() const { return core::meta::role(meta); }
  /// As a tensor of one element.
  [[nodiscard]] core::SummaryRow row() const {
    core::SummaryRow row;
    row.name = name;
    row.count = 1;
    row.sum = value;
    row.sumsq = value * value;
    row.abs_sum = std::fabs(value);
    row.min = row.max = value;
    row.nan = std::isnan(value) ? 1 : 0;
    row.posinf = std::isinf(value) && value > 0 ? 1 : 0;
    row.neginf = std::isinf(value) && value < 0 ? 1 : 0;
    row.zero = value == 0 ? 1 : 0;
    row.negative = value < 0 ? 1 : 0;
    row.meta = meta;
    return row;
  }
};

namespace {

// What other rows are read by: the loss scale and the learning rate.
void note_rates(Worker& from, std::uint64_t name, double value) {
  if (name == loss_scale_hash() && value > 0 && std::isfinite(value)) from.loss_scale = value;
  if (name == learning_rate_hash() && value >= 0 && std::isfinite(value)) {
    from.learning_rate = value;
    from.max_learning_rate = std::fmax(from.max_learning_rate, value);
  }
}

bool has_unresolved(const Run& run, const Roster& here) {
  return here.wanted.size() < here.slots.size() ||
         (here.unresolved && here.names_version != run.names.version);
}

}  // namespace

void Intake::on_scalars(const Turn& turn, Run& run, std::uint32_t worker,
                        const core::FrameView& frame) {
  const core::FrameHeader& header = frame.header();
  if (header.row_stride < core::scalar_column::columns * core::kColumnBytes) return;
  const auto roster_number =
      run.rosters.number_of(units_.roster(turn, run, worker, header.mode, true));
  turn.part.cut.touch_roster(run, roster_number);
  const auto names = frame.column<std::uint64_t>(core::scalar_column::name);
  const auto steps = frame.column<std::int64_t>(core::scalar_column::step);
  const auto global_steps = frame.column<std::int64_t>(core::scalar_column::global_step);
  const auto times = frame.column<std::int64_t>(core::scalar_column::time);
  const auto numbers = frame.column<double>(core::scalar_column::value);
  const auto metas = frame.column<std::uint64_t>(core::scalar_column::meta);
  std::uint32_t guess = 0;
  bool ended = false;
  for (std::size_t i = 0; i < frame.rows(); ++i) {
    const Scalar scalar{names[i], metas[i], steps[i], global_steps[i], times[i], numbers[i]};
    note_rates(run.workers[worker], scalar.name, scalar.value);
    guess = units_.slot(turn, run, run.rosters[roster_number], scalar.name, scalar.meta, guess);
    if (guess == RowBatch::kSkip) continue;
    turn.part.cut.touch_slot(run, roster_number, guess);
    if (on_scalar(turn, run, worker, header, roster_number, guess, scalar)) ended = true;
    ++guess;
  }
  if (ended) steps_.advance(turn, run);
}

// True: it has ended the step before, which nobody else ends.
bool Intake::on_scalar(const Turn& turn, Run& run, std::uint32_t worker,
                       const core::FrameHeader& header, std::uint32_t roster_number,
                       std::uint32_t slot, const Scalar& scalar) {
  Roster& here = run.rosters[roster_number];
  Slot& unit = here.slots[slot];
  // The ledger's rows are sums of single calls: those of one step are added up (docs/ledger.md).
  const bool further = scalar.step == unit.last_step && !run.workers[worker].unsequenced &&
                       scalar.role() == core::Role::ledger;
  if (scalar.step <= unit.last_step && !further) {
    ++stats_.duplicate_rows;
    return false;
  }
  unit.last_step = scalar.step;
  const bool ended = reach_step(turn, run, worker, header.mode, scalar.step);
  if (scalar.role() == core::Role::loss && trains(header.mode)) {
    run.workers[worker].losses.add(scalar.name, scalar.step, scalar.value);
  }
  if (has_unresolved(run, here)) units_.resolve(turn, run, here);
  if (here.wanted[slot] != Match::no && !further) {
    steps_.add(turn, run, worker, header, scalar.step, scalar.global_step, scalar.time, scalar.name,
               scalar.value, scalar.role());
  }
  judge_scalar(turn, run, worker, header, roster_number, slot, scalar);
  return ended;
}

// A worker without step ends has ended a step when it speaks of a later one. True: it just has.
bool Intake::reach_step(const Turn& turn, Run& run, std::uint32_t worker, core::Mode mode,
                        std::int64_t step) {
  std::int64_t& seen = run.workers[worker].seen[at(mode)];
  const bool ended = run.workers[worker].unsequenced && step > seen && seen != kNever;
  if (ended) implicit_step_ends(turn, run, worker, mode, step);
  seen = std::max(seen, step);
  return ended;
}

void Intake::judge_scalar(const Turn& turn, Run& run, std::uint32_t worker,
                          const core::FrameHeader& header, std::uint32_t roster_number,
                          std::uint32_t slot, const Scalar& scalar) {
  const core::SummaryRow row = scalar.row();
  RowBatch batch;
  batch.columns = reinterpret_cast<const std::byte*>(&row);
  batch.rows = 1;
  batch.slots = std::span(&slot, 1);
  batch.first = slot;
  batch.mode = header.mode;
  batch.step = scalar.step;
  batch.time = scalar.time;
  batch.world_size = header.world_size;
  batch.epoch = epoch_of(run.workers[worker], header);
  batch.loss_scale = run.workers[worker].loss_scale;
  batch.scalar = true;
  batch.names = &run.names.table;
  Place place = at_step(header.mode, scalar.step, scalar.global_step, scalar.time);
  place.partial = run.workers[worker].gap;
  rows_.judge(turn, run, roster_number, batch, place);
  if (turn.rules().takers_of(input::kRows).empty()) return;
  WorkerRows taken;
  taken.worker = worker;
  taken.mode = header.mode;
  taken.step = scalar.step;
  taken.global_step = scalar.global_step;
  taken.time = scalar.time;
  taken.epoch = batch.epoch;
  taken.scalar = &row;
  evaluations_.feed_rows(turn, run, roster_number, taken, std::span(&slot, 1), slot);
}

void Intake::on_step_end(const Turn& turn, Run& run, std::uint32_t worker,
                         const core::FrameView& frame) {
  const core::FrameHeader& header = frame.header();
  if (header.row_stride < core::step_end_column::meta * core::kColumnBytes) return;
  const auto steps = frame.column<std::int64_t>(core::step_end_column::step);
  const auto global_steps = frame.column<std::int64_t>(core::step_end_column::global_step);
  const auto starts = frame.column<std::int64_t>(core::step_end_column::start);
  const auto ends = frame.column<std::int64_t>(core::step_end_column::end);
  for (std::size_t i = 0; i < frame.rows(); ++i) {
    Worker& from = run.workers[worker];
    const std::int64_t took = std::max<std::int64_t>(distance(ends[i], starts[i]), 0);
    if (took > 0) from.step_times[from.steps_timed++ % from.step_times.size()] = took;
    if (took > 0 && header.mode == core::Mode::train) {
      run.pulse.step_times[run.pulse.steps_timed++ % run.pulse.step_times.size()] = took;
    }
    Place place = at_step(header.mode, steps[i], global_steps[i], ends[i]);
    place.partial = from.gap;
    end_step(turn, run, worker, header.mode, steps[i], place);
    steps_.ended(turn, run, worker, header, steps[i], global_steps[i], ends[i]);
    if (!turn.rules().takers_of(input::kStepEnds).empty()) {
      const bool skipped = frame.step_end(i).meta & core::meta::kOptimizerSkipped;
      evaluations_.feed_step_end(
          turn, run,
          {worker, header.mode, steps[i], global_steps[i], starts[i], ends[i], place.partial,
           skipped, epoch_of(run.workers[worker], header)});
    }
  }
  steps_.advance(turn, run);
  jobs_.heartbeat(turn, run, header.time, false);
}

void Intake::restart(const Turn& turn, Run& run, std::uint32_t worker) {
  for (std::uint32_t i = 0; i < run.rosters.size(); ++i) {
    Roster& each = run.rosters[i];
    if (each.worker != worker) continue;
    turn.part.cut.touch_roster(run, i);
    turn.part.cut.touch_slots(run, i);
    for (Slot& unit : each.slots) unit.last_step = kNever;
    for (Block& block : each.blocks) block.waiting.clear();
  }
  evaluations_.restart(turn, run, worker);
  run.workers[worker].mark.fill(kNever);
  run.workers[worker].seen.fill(kNever);
}

void Intake::end_step(const Turn& turn, Run& run, std::uint32_t worker, core::Mode mode,
                      std::int64_t step, const Place& place) {
  Worker& from = run.workers[worker];
  if (step <= from.mark[at(mode)]) return;
  if (!turn.rules().rows.empty()) rows_.end_step(turn, run, worker, mode, step, place);
  from.mark[at(mode)] = step;
  from.seen[at(mode)] = std::max(from.seen[at(mode)], step);
  const std::uint8_t passing = mode_bit(core::Mode::eval) | mode_bit(core::Mode::predict);
  from.active = static_cast<std::uint8_t>(from.active & ~(passing & ~mode_bit(mode)));
  if (from.gap) {
    ++stats_.partial_steps;
    run.steps.partial[{static_cast<std::uint8_t>(mode), step}].push_back(from.rank);
  }
  own_.judge_gap(turn, run, worker, place);
  from.gap = false;
}

void Intake::implicit_step_ends(const Turn& turn, Run& run, std::uint32_t worker, core::Mode mode,
                                std::int64_t step) {
  // A worker that sends JSON only: its first record of a later step ends the earlier ones.
  Worker& from = run.workers[worker];
  const std::int64_t ended = std::min(from.seen[at(mode)], step - 1);
  if (ended <= from.mark[at(mode)]) return;
  from.mark[at(mode)] = ended;
  if (turn.rules().takers_of(input::kStepEnds).empty()) return;
  evaluations_.feed_step_end(turn, run,
                             {worker, mode, ended, ended, from.last_time, from.last_time});
}

}  // namespace tocsin::rules

// Rows: tensors and single scalars, judged as they arrive. The order of tensors repeats every step,
// so a row's unit is found by looking one place further than the last, and only then by its hash.
#include <algorithm>
#include <array>

#include "core/collections.h"
#include "rules/engine_impl.h"

namespace tocsin::rules {
namespace {

std::uint64_t loss_scale_hash() {
  static const std::uint64_t kHash = core::name_hash("loss_scale");
  return kHash;
}

std::uint64_t learning_rate_hash() {
  static const std::uint64_t kHash = core::name_hash("learning_rate");
  return kHash;
}

// Units of a lane that a rule looks at get their states; a rule that looks at none costs nothing.
void grow(const RowProgram& program, Block& block, const Lane& lane) {
  const std::size_t ready = block.lives.size();
  if (ready == lane.slots.size()) return;
  const std::size_t size = program.state_bytes();
  block.state_size = static_cast<std::uint32_t>(size);
  block.lives.resize(lane.slots.size());
  block.states.resize(lane.slots.size() * size);
  for (std::size_t i = ready; i < lane.slots.size(); ++i) {
    program.init(block.states.data() + i * size);
  }
}

}  // namespace

Lane& Engine::Impl::lane(Run& run, std::uint32_t worker, core::Mode mode, bool scalars) {
  const std::uint32_t number = run.lanes.find(worker, mode, scalars);
  if (number != kNoLane) return run.lanes[number];
  part->cut.touch_lane(run, static_cast<std::uint32_t>(run.lanes.size()));
  return run.lanes.add(worker, mode, scalars, row_rules.size());
}

std::uint32_t Engine::Impl::slot(Run& run, Lane& lane, std::uint64_t name, std::uint64_t meta,
                                 std::uint32_t guess) {
  if (guess < lane.slots.size() && lane.slots[guess].name == name) return guess;
  const std::uint32_t found = lane.index.find(name);
  if (found != FlatIndex::kNone) return found;
  if (run.lanes.units >= options.config.max_units_per_run) {
    ++stats.refused_units;
    return RowBatch::kSkip;
  }
  ++run.lanes.units;
  const auto number = static_cast<std::uint32_t>(lane.slots.size());
  part->cut.touch_slot(run, run.lanes.number_of(lane), number);
  lane.index.insert(name, number);
  lane.slots.push_back({name, kNever});
  const auto type = static_cast<std::uint16_t>(meta & 0xFFFF);
  lane.types.push_back(type);
  lane.losses = lane.losses || core::meta::role(meta) == core::Role::loss;
  return number;
}

Candidate Engine::Impl::candidate_of(const Run& run, std::uint32_t number) {
  const Worker& worker = run.workers[number];
  Candidate out;
  out.worker = worker.name;
  out.worker_named = worker.named;
  out.rank = worker.rank;
  out.node = worker.node;
  out.job = run.job.name;
  out.labels = run.job.labels;
  return out;
}

Candidate Engine::Impl::candidate_of(const Run& run, const Lane& lane, std::size_t number) {
  Candidate out = candidate_of(run, lane.worker);
  out.name = run.names.table.find(lane.slots[number].name);
  out.role = static_cast<core::Role>(lane.types[number] >> 8);
  if (out.role == core::Role::other && out.name != nullptr) out.role = out.name->role;
  out.dtype = static_cast<core::Dtype>(lane.types[number] & 0xFF);
  out.mode = lane.mode;
  out.scalar = lane.scalars;
  return out;
}

// Decides for new slots, and again for those whose dictionary entry was missing, which rules look.
void Engine::Impl::resolve(Run& run, Lane& lane) {
  const bool again = lane.unresolved && lane.names_version != run.names.version;
  const std::size_t first = again ? 0 : lane.wanted.size();
  if (first == lane.slots.size()) return;
  const auto lane_number = run.lanes.number_of(lane);
  part->cut.touch_lane(run, lane_number);
  part->cut.touch_slots(run, lane_number, first);
  lane.names_version = run.names.version;
  if (again) lane.unresolved = false;
  lane.wanted.resize(lane.slots.size());
  for (std::size_t i = first; i < lane.slots.size(); ++i) {
    const Name* name = run.names.table.find(lane.slots[i].name);
    const Candidate candidate = candidate_of(run, lane, i);
    const core::Role role = candidate.role;
    for (std::size_t r = 0; r < row_rules.size(); ++r) {
      const RowProgram& program = *row_rules[r].program;
      if (!program.common.wants_mode(lane.mode) ||
          !wants_worker(program.common, run.workers[lane.worker])) {
        continue;
      }
      Block& block = lane.blocks[r];
      if (block.applies.size() < first || block.lives.size() < first) {
        part->cut.touch_slots(run, lane_number);  // older units get what they had no use for
      }
      block.applies.resize(lane.slots.size());
      if (block.applies[i] == Match::unknown) {
        block.applies[i] = program.selects(candidate);
      }
      lane.unresolved = lane.unresolved || block.applies[i] == Match::unknown;
      if (block.applies[i] == Match::yes || !block.lives.empty()) grow(program, block, lane);
    }
    if (lane.wanted[i] != Match::unknown) continue;
    lane.wanted[i] = Match::no;
    for (const auto& series : series_rules) {
      const Match match = series.program->selection.matches(role, name);
      if (match == Match::yes || lane.wanted[i] == Match::no) lane.wanted[i] = match;
      if (match == Match::yes) break;
    }
    lane.unresolved = lane.unresolved || lane.wanted[i] == Match::unknown;
  }
}

void Engine::Impl::on_summary(Run& run, std::uint32_t worker, const core::FrameView& frame) {
  const core::FrameHeader& header = frame.header();
  Lane& here = lane(run, worker, header.mode, false);
  const auto lane_number = run.lanes.number_of(here);
  part->cut.touch_lane(run, lane_number);
  const std::size_t rows = frame.rows();
  if (frame.header().row_stride < core::summary_column::columns * core::kColumnBytes) return;
  run.workers[worker].seen[at(header.mode)] =
      std::max(run.workers[worker].seen[at(header.mode)], header.step);
  const auto names = frame.column<std::uint64_t>(core::summary_column::name);
  const auto metas = frame.column<std::uint64_t>(core::summary_column::meta);
  slots.resize(rows);
  std::uint32_t guess = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    const std::uint64_t name = names[i];
    if (guess >= here.slots.size() || here.slots[guess].name != name) {
      guess = slot(run, here, name, metas[i], guess);
    }
    slots[i] = guess;
    if (guess == RowBatch::kSkip) {
      guess = 0;
      continue;
    }
    part->cut.touch_slot(run, lane_number, guess);
    Slot& unit = here.slots[guess];
    if (header.step <= unit.last_step) {
      slots[i] = RowBatch::kSkip;
      ++stats.duplicate_rows;
    } else {
      unit.last_step = header.step;
    }
    ++guess;
  }
  if (here.wanted.size() < here.slots.size() ||
      (here.unresolved && here.names_version != run.names.version)) {
    resolve(run, here);
  }
  sparse.clear();
  vectors.clear();
  if (header.body_length > static_cast<std::size_t>(header.row_stride) * rows) {
    frame.sparse_columns([this](const core::SparseColumn& column) { sparse.push_back(column); });
    frame.vectors([this](const core::SparseVector& vector) { vectors.push_back(vector); });
  }
  if (here.losses) {
    for (std::size_t i = 0; i < rows; ++i) {
      if (slots[i] == RowBatch::kSkip || here.wanted[slots[i]] == Match::no) continue;
      const core::SummaryRow row = frame.summary(i);
      add_pending(run, worker, header, header.step, header.global_step, header.time, row.name,
                  row.count == 0 ? std::nan("") : row.mean(), core::meta::role(row.meta));
    }
  }
  RowBatch batch;
  batch.columns = frame.body().data();
  batch.rows = rows;
  batch.slots = slots;
  batch.mode = header.mode;
  batch.step = header.step;
  batch.time = header.time;
  batch.world_size = header.world_size;
  batch.loss_scale = run.workers[worker].loss_scale;
  batch.learning_rate = run.workers[worker].learning_rate;
  batch.max_learning_rate = run.workers[worker].max_learning_rate;
  batch.names = &run.names.table;
  batch.sparse = sparse;
  batch.vectors = vectors;
  Place place;
  place.mode = header.mode;
  place.step = header.step;
  place.global_step = header.global_step;
  place.time = header.time;
  place.partial = run.workers[worker].gap;
  judge_rows(run, lane_number, batch, place);
  if (takers_of(input::kRows).empty()) return;
  WorkerRows taken;
  taken.worker = worker;
  taken.mode = header.mode;
  taken.step = header.step;
  taken.global_step = header.global_step;
  taken.time = header.time;
  taken.frame = &frame;
  feed_rows(run, lane_number, taken, slots);
}

void Engine::Impl::on_scalars(Run& run, std::uint32_t worker, const core::FrameView& frame) {
  const core::FrameHeader& header = frame.header();
  if (header.row_stride < core::scalar_column::columns * core::kColumnBytes) return;
  const auto lane_number = run.lanes.number_of(lane(run, worker, header.mode, true));
  part->cut.touch_lane(run, lane_number);
  const auto names = frame.column<std::uint64_t>(core::scalar_column::name);
  const auto steps = frame.column<std::int64_t>(core::scalar_column::step);
  const auto global_steps = frame.column<std::int64_t>(core::scalar_column::global_step);
  const auto times = frame.column<std::int64_t>(core::scalar_column::time);
  const auto numbers = frame.column<double>(core::scalar_column::value);
  const auto metas = frame.column<std::uint64_t>(core::scalar_column::meta);
  std::uint32_t guess = 0;
  bool ended = false;
  for (std::size_t i = 0; i < frame.rows(); ++i) {
    Lane& here = run.lanes[lane_number];
    const double x = numbers[i];
    if (names[i] == loss_scale_hash() && x > 0 && std::isfinite(x)) {
      run.workers[worker].loss_scale = x;
    }
    if (names[i] == learning_rate_hash() && x >= 0 && std::isfinite(x)) {
      Worker& from = run.workers[worker];
      from.learning_rate = x;
      from.max_learning_rate = std::fmax(from.max_learning_rate, x);
    }
    guess = slot(run, here, names[i], metas[i], guess);
    if (guess == RowBatch::kSkip) continue;
    part->cut.touch_slot(run, lane_number, guess);
    Slot& unit = here.slots[guess];
    if (steps[i] <= unit.last_step) {
      ++stats.duplicate_rows;
      ++guess;
      continue;
    }
    unit.last_step = steps[i];
    std::int64_t& seen = run.workers[worker].seen[at(header.mode)];
    if (run.workers[worker].unsequenced && steps[i] > seen && seen != kNever) {
      implicit_step_ends(run, worker, header.mode, steps[i]);
      ended = true;
    }
    seen = std::max(seen, steps[i]);
    if (here.wanted.size() < here.slots.size() ||
        (here.unresolved && here.names_version != run.names.version)) {
      resolve(run, here);
    }
    if (here.wanted[guess] != Match::no) {
      add_pending(run, worker, header, steps[i], global_steps[i], times[i], names[i], x,
                  core::meta::role(metas[i]));
    }
    core::SummaryRow row;
    row.name = names[i];
    row.count = 1;
    row.sum = x;
    row.sumsq = x * x;
    row.abs_sum = std::fabs(x);
    row.min = row.max = x;
    row.nan = std::isnan(x) ? 1 : 0;
    row.posinf = std::isinf(x) && x > 0 ? 1 : 0;
    row.neginf = std::isinf(x) && x < 0 ? 1 : 0;
    row.zero = x == 0 ? 1 : 0;
    row.negative = x < 0 ? 1 : 0;
    row.meta = metas[i];
    RowBatch batch;
    batch.columns = reinterpret_cast<const std::byte*>(&row);
    batch.rows = 1;
    batch.slots = std::span(&guess, 1);
    batch.mode = header.mode;
    batch.step = steps[i];
    batch.time = times[i];
    batch.world_size = header.world_size;
    batch.loss_scale = run.workers[worker].loss_scale;
    batch.scalar = true;
    batch.names = &run.names.table;
    Place place;
    place.mode = header.mode;
    place.step = steps[i];
    place.global_step = global_steps[i];
    place.time = times[i];
    place.partial = run.workers[worker].gap;
    judge_rows(run, lane_number, batch, place);
    if (!takers_of(input::kRows).empty()) {
      WorkerRows taken;
      taken.worker = worker;
      taken.mode = header.mode;
      taken.step = steps[i];
      taken.global_step = global_steps[i];
      taken.time = times[i];
      taken.scalar = &row;
      feed_rows(run, lane_number, taken, std::span(&guess, 1));
    }
    ++guess;
  }
  if (ended) advance(run);
}

void Engine::Impl::judge_rows(Run& run, std::uint32_t lane_number, RowBatch& batch, Place place) {
  for (std::size_t r = 0; r < row_rules.size(); ++r) {
    const RowProgram& program = *row_rules[r].program;
    Block& block = run.lanes[lane_number].blocks[r];
    if (block.lives.empty() || !program.common.wants_step(batch.step)) continue;
    const bool waits = program.min_fraction() > 0;
    if (block.tally.step != batch.step) {
      if (waits && !block.waiting.empty()) {
        // The step-end was lost: what it would have judged is judged now, and what comes counts behind
        // it.
        end_row_step(run, lane_number, block.tally.step, place);
      }
      block.tally = {batch.step, place.global_step, 0, 0, RowBatch::kSkip};
    }
    OutcomeCounts counts{};
    noted.clear();
    program.judge(batch, block.states.data(), block.lives.data(), block.applies.data(), noted,
                  counts);
    const std::uint64_t judged = counts[static_cast<std::size_t>(Outcome::ok)] +
                                 counts[static_cast<std::size_t>(Outcome::hit)];
    if (block.tally.hit == 0) {
      const auto first = std::find_if(noted.begin(), noted.end(), [](const RowHit& one) {
        return one.verdict.outcome == Outcome::hit;
      });
      if (first != noted.end()) block.tally.first = first->slot;
    }
    block.tally.hit += counts[static_cast<std::size_t>(Outcome::hit)];
    block.tally.evaluated += judged;
    if (waits) {
      // What a hit comes to is known when the worker has ended the step.
      block.waiting.insert(block.waiting.end(), noted.begin(), noted.end());
      counts[static_cast<std::size_t>(Outcome::hit)] = 0;
      count(run, row_rules[r].rule, counts);
      continue;
    }
    count(run, row_rules[r].rule, counts);
    if (!noted.empty()) settle_rows(run, lane_number, r, noted, &batch, place);
  }
}

void Engine::Impl::end_row_step(Run& run, std::uint32_t worker, core::Mode mode, std::int64_t step,
                                const Place& place) {
  for (const bool scalars : {false, true}) {
    const std::uint32_t lane_number = run.lanes.find(worker, mode, scalars);
    if (lane_number != kNoLane) end_row_step(run, lane_number, step, place);
  }
}

void Engine::Impl::end_row_step(Run& run, std::uint32_t lane_number, std::int64_t step,
                                const Place& place) {
  for (std::size_t r = 0; r < row_rules.size(); ++r) {
    Block& block = run.lanes[lane_number].blocks[r];
    if (block.waiting.empty() || block.tally.step > step) continue;
    part->cut.touch_lane(run, lane_number);
    Place own =
        place;  // whose step-end was lost is judged behind a later step, but stands at its own
    own.step = block.tally.step;
    own.global_step = block.tally.global_step;
    std::vector<RowHit> waiting = std::exchange(block.waiting, {});
    const double needed =
        row_rules[r].program->min_fraction() * static_cast<double>(block.tally.evaluated);
    const bool counts = static_cast<double>(block.tally.hit) >= needed;
    OutcomeCounts outcomes{};
    for (RowHit& one : waiting) {
      if (one.verdict.outcome != Outcome::hit) continue;
      if (!counts) one.verdict = kOk;
      ++outcomes[static_cast<std::size_t>(one.verdict.outcome)];
    }
    count(run, row_rules[r].rule, outcomes);
    settle_rows(run, lane_number, r, waiting, nullptr, own);
    waiting.clear();
    run.lanes[lane_number].blocks[r].waiting.swap(waiting);  // keeps its capacity
  }
}

void Engine::Impl::settle_rows(Run& run, std::uint32_t lane_number, std::size_t row_rule,
                               std::span<const RowHit> hits, const RowBatch* batch,
                               const Place& place) {
  const RowProgram& program = *row_rules[row_rule].program;
  const std::uint32_t rule = row_rules[row_rule].rule;
  const std::uint32_t worker = run.lanes[lane_number].worker;
  const std::size_t size = program.state_bytes();
  for (const RowHit& one : hits) {
    part->cut.touch_slot(run, lane_number, one.slot);
    Lane& here = run.lanes[lane_number];
    Block& block = here.blocks[row_rule];
    const std::byte* state = block.states.data() + one.slot * size;
    const std::uint64_t name = here.slots[one.slot].name;
    std::optional<Row> row;
    if (batch != nullptr) row.emplace(batch->columns, batch->rows, one.row);
    const auto labels = [&]() -> std::vector<std::pair<std::string, std::string>> {
      return {{"mode", std::string(core::to_string(here.mode))},
              {here.scalars ? "metric" : "tensor", name_of(run, name)},
              {"worker", run.workers[worker].name}};
    };
    const auto explain = [&](unsigned kind) -> std::pair<Finding, Extra> {
      Extra extra;
      extra.affected.hit = block.tally.hit;
      extra.affected.evaluated = block.tally.evaluated;
      for (const RowHit& other : hits) {
        if (other.verdict.outcome != Outcome::hit) continue;
        std::optional<Row> its;
        if (batch != nullptr) its.emplace(batch->columns, batch->rows, other.row);
        const double bad =
            program.badness(block.states.data() + other.slot * size, its ? &*its : nullptr);
        extra.affected.worst.emplace_back(
            (here.scalars ? "metric=" : "tensor=") + name_of(run, here.slots[other.slot].name),
            std::isnan(bad) ? HUGE_VAL : bad);  // NaN would break the order
        if (extra.affected.worst.size() >= 1000) break;
      }
      std::stable_sort(extra.affected.worst.begin(), extra.affected.worst.end(),
                       [](const auto& a, const auto& b) { return a.second > b.second; });
      if (extra.affected.worst.size() > 10) extra.affected.worst.resize(10);
      Subject subject;
      subject.name = name_of(run, name);
      subject.worker = run.workers[worker].name;
      subject.mode = here.mode;
      subject.dtype = static_cast<core::Dtype>(here.types[one.slot] & 0xFF);
      subject.step = place.step;
      subject.hit = block.tally.hit;
      subject.evaluated = block.tally.evaluated;
      subject.position = one.slot;
      if (block.tally.first < here.slots.size()) {
        subject.first_hit = name_of(run, here.slots[block.tally.first].name);
      }
      extra.role = static_cast<core::Role>(here.types[one.slot] >> 8);
      if (!here.scalars) {
        core::TensorRef tensor;
        tensor.name = subject.name;
        const core::Collection* collection = core::collection_of(*extra.role);
        if (collection != nullptr) tensor.collection = collection->name;
        tensor.dtype = subject.dtype;
        if (const Name* known = run.names.table.find(name)) tensor.shape = known->shape;
        extra.tensor = std::move(tensor);
      }
      return {program.explain(state, row ? &*row : nullptr, batch, subject, kind),
              std::move(extra)};
    };
    const Unit unit{{rule, lane_number, one.slot, 0xFF, 0}, worker, labels};
    settle(run, rule, block.lives[one.slot], unit, one.verdict, place, explain);
  }
}

// The run is over: verdicts that still wait for the end of their step are judged.
void Engine::Impl::flush_rows(Run& run) {
  for (std::uint32_t i = 0; i < run.lanes.size(); ++i) {
    const Lane& here = run.lanes[i];
    std::int64_t newest = kNever;
    for (const Block& block : here.blocks) {
      if (!block.waiting.empty()) newest = std::max(newest, block.tally.step);
    }
    if (newest == kNever) continue;
    Place place;
    place.mode = here.mode;
    place.step = newest;
    place.global_step = run.course.last_global_step;
    place.time = run.workers[here.worker].last_time;
    place.partial = run.workers[here.worker].gap;
    end_row_step(run, i, newest, place);
  }
}

void Engine::Impl::reset_units(Run& run, std::uint32_t worker) {
  for (std::uint32_t i = 0; i < run.lanes.size(); ++i) {
    Lane& each = run.lanes[i];
    if (each.worker != worker) continue;
    part->cut.touch_lane(run, i);
    part->cut.touch_slots(run, i);
    for (Slot& unit : each.slots) unit.last_step = kNever;
    for (Block& block : each.blocks) block.waiting.clear();
  }
  restart_evaluators(run, worker);
  run.workers[worker].mark.fill(kNever);
  run.workers[worker].seen.fill(kNever);
}

}  // namespace tocsin::rules

#include "rules/engine/units/row_judge.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/collections.h"
#include "rules/engine/partition/describe.h"

namespace tocsin::rules {
namespace {

constexpr std::size_t kCompared = 1000;  // hits of one step
constexpr std::size_t kWorst = 10;       // of them that are told by name

std::optional<Row> row_of(const RowBatch* batch, const RowHit& hit) {
  if (batch == nullptr) return std::nullopt;
  return Row(batch->columns, batch->rows, hit.row);
}

/// The worst hits, the worst first.
std::vector<const RowHit*> worst_of(const RowProgram& program, const std::byte* states,
                                    std::span<const RowHit> hits, const RowBatch* batch) {
  std::vector<std::pair<double, const RowHit*>> found;
  for (const RowHit& one : hits) {
    if (one.verdict.outcome != EvaluationOutcome::hit) continue;
    const std::optional<Row> row = row_of(batch, one);
    const double bad =
        program.badness(states + one.slot * program.state_bytes(), row ? &*row : nullptr);
    found.emplace_back(std::isnan(bad) ? HUGE_VAL : bad, &one);  // NaN would break the order
    if (found.size() >= kCompared) break;
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (found.size() > kWorst) found.resize(kWorst);
  std::vector<const RowHit*> out;
  out.reserve(found.size());
  for (const auto& [bad, hit] : found) out.push_back(hit);
  return out;
}

}  // namespace

void RowJudge::judge(const Turn& turn, Run& run, std::uint32_t roster_number, RowBatch& batch,
                     Place place) {
  const RuleTable& rules = turn.rules();
  for (std::size_t r = 0; r < rules.rows.size(); ++r) {
    const RowProgram& program = *rules.rows[r].program;
    Block& block = run.rosters[roster_number].blocks[r];
    if (block.lives.empty() || !program.common.wants_step(batch.step)) continue;
    const bool waits = program.min_fraction() > 0;
    if (block.tally.step != batch.step) {
      if (waits && !block.waiting.empty()) {
        // The step-end was lost: what it would have judged is judged now, and what comes counts behind
        // it.
        end_step(turn, run, roster_number, block.tally.step, place);
      }
      block.tally = {batch.step, place.global_step, 0, 0, RowBatch::kSkip};
    }
    if (block.picks.empty()) continue;
    block.picks.rows(batch.slots, batch.first, block.applies, rows_);
    if (rows_.empty()) continue;
    EvaluationCounts counts{};
    noted_.clear();
    program.judge(batch, rows_, block.states.data(), block.lives.data(), noted_, counts);
    const std::uint64_t judged = counts[static_cast<std::size_t>(EvaluationOutcome::ok)] +
                                 counts[static_cast<std::size_t>(EvaluationOutcome::hit)];
    if (block.tally.hit == 0) {
      const auto first = std::find_if(noted_.begin(), noted_.end(), [](const RowHit& one) {
        return one.verdict.outcome == EvaluationOutcome::hit;
      });
      if (first != noted_.end()) block.tally.first = first->slot;
    }
    block.tally.hit += counts[static_cast<std::size_t>(EvaluationOutcome::hit)];
    block.tally.evaluated += judged;
    if (waits) {
      // What a hit comes to is known when the worker has ended the step.
      block.waiting.insert(block.waiting.end(), noted_.begin(), noted_.end());
      counts[static_cast<std::size_t>(EvaluationOutcome::hit)] = 0;
      book_.count(turn, run, rules.rows[r].rule, counts);
      continue;
    }
    book_.count(turn, run, rules.rows[r].rule, counts);
    if (!noted_.empty()) apply(turn, run, roster_number, r, noted_, &batch, place);
  }
}

void RowJudge::end_step(const Turn& turn, Run& run, std::uint32_t worker, core::Mode mode,
                        std::int64_t step, const Place& place) {
  for (const bool scalars : {false, true}) {
    const std::uint32_t roster_number = run.rosters.find(worker, mode, scalars);
    if (roster_number != kNoRoster) end_step(turn, run, roster_number, step, place);
  }
}

void RowJudge::end_step(const Turn& turn, Run& run, std::uint32_t roster_number, std::int64_t step,
                        const Place& place) {
  for (std::size_t r = 0; r < turn.rules().rows.size(); ++r) {
    Block& block = run.rosters[roster_number].blocks[r];
    if (block.waiting.empty() || block.tally.step > step) continue;
    turn.part.cut.touch_roster(run, roster_number);
    Place own =
        place;  // whose step-end was lost is judged behind a later step, but stands at its own
    own.step = block.tally.step;
    own.global_step = block.tally.global_step;
    std::vector<RowHit> waiting = std::exchange(block.waiting, {});
    const double needed =
        turn.rules().rows[r].program->min_fraction() * static_cast<double>(block.tally.evaluated);
    const bool counts = static_cast<double>(block.tally.hit) >= needed;
    EvaluationCounts outcomes{};
    for (RowHit& one : waiting) {
      if (one.verdict.outcome != EvaluationOutcome::hit) continue;
      if (!counts) one.verdict = kOk;
      ++outcomes[static_cast<std::size_t>(one.verdict.outcome)];
    }
    book_.count(turn, run, turn.rules().rows[r].rule, outcomes);
    apply(turn, run, roster_number, r, waiting, nullptr, own);
    waiting.clear();
    run.rosters[roster_number].blocks[r].waiting.swap(waiting);  // keeps its capacity
  }
}

void RowJudge::apply(const Turn& turn, Run& run, std::uint32_t roster_number, std::size_t row_rule,
                     std::span<const RowHit> hits, const RowBatch* batch, const Place& place) {
  const RowProgram& program = *turn.rules().rows[row_rule].program;
  const std::uint32_t rule = turn.rules().rows[row_rule].rule;
  const std::uint32_t worker = run.rosters[roster_number].worker;
  const std::size_t size = program.state_bytes();
  for (const RowHit& one : hits) {
    turn.part.cut.touch_slot(run, roster_number, one.slot);
    Roster& here = run.rosters[roster_number];
    Block& block = here.blocks[row_rule];
    const std::byte* state = block.states.data() + one.slot * size;
    const std::uint64_t name = here.slots[one.slot].name;
    if (one.verdict.outcome == EvaluationOutcome::error) {
      book_.fail(turn, run, rule, name_of(run, name) + ": " + program.trouble(state));
      continue;
    }
    const std::optional<Row> row = row_of(batch, one);
    const auto labels = [&]() -> std::vector<std::pair<std::string, std::string>> {
      return {{"mode", std::string(core::to_string(here.mode))},
              {here.scalars ? "metric" : "tensor", name_of(run, name)},
              {"worker", run.workers[worker].name}};
    };
    const auto explain = [&](unsigned kind) -> std::pair<Finding, Extra> {
      Extra extra;
      extra.affected.hit = block.tally.hit;
      extra.affected.evaluated = block.tally.evaluated;
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
      // What each of them comes to is in the rule's own number: `badness` is only for their order.
      for (const RowHit* other : worst_of(program, block.states.data(), hits, batch)) {
        Subject its = subject;
        its.name = name_of(run, here.slots[other->slot].name);
        its.dtype = static_cast<core::Dtype>(here.types[other->slot] & 0xFF);
        its.position = other->slot;
        const std::optional<Row> values = row_of(batch, *other);
        const unsigned kinds = other->verdict.kinds;
        const bool so = (kinds >> kind & 1U) != 0;
        const Finding found =
            program.explain(block.states.data() + other->slot * size, values ? &*values : nullptr,
                            batch, its, so ? kind : static_cast<unsigned>(std::countr_zero(kinds)));
        extra.affected.worst.emplace_back((here.scalars ? "metric=" : "tensor=") + its.name,
                                          found.observed.value);
      }
      extra.role = static_cast<core::Role>(here.types[one.slot] >> 8);
      if (!here.scalars) {
        core::TensorRef tensor;
        tensor.name = subject.name;
        const core::Collection* collection = core::collection_of(*extra.role);
        if (collection != nullptr) tensor.collection = collection->name;
        tensor.dtype = subject.dtype;
        if (const Name* known = run.workers[worker].about(name, run.names.table)) {
          tensor.shape = known->shape;
        }
        extra.tensor = std::move(tensor);
      }
      return {program.explain(state, row ? &*row : nullptr, batch, subject, kind),
              std::move(extra)};
    };
    const Unit unit{{rule, roster_number, one.slot, 0xFF, 0}, worker, labels};
    book_.apply(turn, run, rule, block.lives[one.slot], unit, one.verdict, place, explain);
  }
}

// The run is over: verdicts that still wait for the end of their step are judged.
void RowJudge::flush(const Turn& turn, Run& run) {
  for (std::uint32_t i = 0; i < run.rosters.size(); ++i) {
    const Roster& here = run.rosters[i];
    std::int64_t newest = kNever;
    for (const Block& block : here.blocks) {
      if (!block.waiting.empty()) newest = std::max(newest, block.tally.step);
    }
    if (newest == kNever) continue;
    Place place =
        at_step(here.mode, newest, run.course.last_global_step, run.workers[here.worker].last_time);
    place.partial = run.workers[here.worker].gap;
    end_step(turn, run, i, newest, place);
  }
}

}  // namespace tocsin::rules

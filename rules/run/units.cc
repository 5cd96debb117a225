#include "rules/run/units.h"

#include <algorithm>

namespace tocsin::rules {
namespace {

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

Lane& Units::lane(Run& run, std::uint32_t worker, core::Mode mode, bool scalars) {
  const std::uint32_t number = run.lanes.find(worker, mode, scalars);
  if (number != kNoLane) return run.lanes[number];
  ctx_.part->cut.touch_lane(run, static_cast<std::uint32_t>(run.lanes.size()));
  return run.lanes.add(worker, mode, scalars, ctx_.rules->rows.size());
}

std::uint32_t Units::slot(Run& run, Lane& lane, std::uint64_t name, std::uint64_t meta,
                          std::uint32_t guess) {
  if (guess < lane.slots.size() && lane.slots[guess].name == name) return guess;
  const std::uint32_t found = lane.index.find(name);
  if (found != FlatIndex::kNone) return found;
  if (run.lanes.units >= ctx_.options.config.max_units_per_run) {
    ++ctx_.stats.refused_units;
    return RowBatch::kSkip;
  }
  ++run.lanes.units;
  const auto number = static_cast<std::uint32_t>(lane.slots.size());
  ctx_.part->cut.touch_slot(run, run.lanes.number_of(lane), number);
  lane.index.insert(name, number);
  lane.slots.push_back({name, kNever});
  const auto type = static_cast<std::uint16_t>(meta & 0xFFFF);
  lane.types.push_back(type);
  lane.losses = lane.losses || core::meta::role(meta) == core::Role::loss;
  return number;
}

// Decides for new slots, and again for those whose dictionary entry was missing, which rules look.
void Units::resolve(Run& run, Lane& lane) {
  const bool again = lane.unresolved && lane.names_version != run.names.version;
  const std::size_t first = again ? 0 : lane.wanted.size();
  if (first == lane.slots.size()) return;
  const auto lane_number = run.lanes.number_of(lane);
  ctx_.part->cut.touch_lane(run, lane_number);
  ctx_.part->cut.touch_slots(run, lane_number, first);
  lane.names_version = run.names.version;
  if (again) lane.unresolved = false;
  lane.wanted.resize(lane.slots.size());
  for (std::size_t i = first; i < lane.slots.size(); ++i) {
    const Name* name = run.names.table.find(lane.slots[i].name);
    const Candidate candidate = candidate_of(run, lane, i);
    const core::Role role = candidate.role;
    for (std::size_t r = 0; r < ctx_.rules->rows.size(); ++r) {
      const RowProgram& program = *ctx_.rules->rows[r].program;
      if (!program.common.wants_mode(lane.mode) ||
          !wants_worker(program.common, run.workers[lane.worker])) {
        continue;
      }
      Block& block = lane.blocks[r];
      if (block.applies.size() < first || block.lives.size() < first) {
        ctx_.part->cut.touch_slots(run, lane_number);  // older units get what they had no use for
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
    for (const auto& series : ctx_.rules->series) {
      const Match match = series.program->selection.matches(role, name);
      if (match == Match::yes || lane.wanted[i] == Match::no) lane.wanted[i] = match;
      if (match == Match::yes) break;
    }
    lane.unresolved = lane.unresolved || lane.wanted[i] == Match::unknown;
  }
}

}  // namespace tocsin::rules

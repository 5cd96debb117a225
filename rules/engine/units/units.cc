#include "rules/engine/units/units.h"
#include "rules/engine/partition/describe.h"

#include <algorithm>

namespace tocsin::rules {
namespace {

// States are most of what is kept: no half of the room stands empty, as a vector of its own accord has it.
template <typename T>
void resize(std::vector<T>& all, std::size_t size) {
  if (size > all.capacity()) all.reserve(std::max(size, all.capacity() + all.capacity() / 8));
  all.resize(size);
}

// Units of a roster that a rule looks at get their states; a rule that looks at none costs nothing.
void grow(const RowProgram& program, Block& block, const Roster& roster) {
  const std::size_t ready = block.lives.size();
  if (ready == roster.slots.size()) return;
  const std::size_t size = program.state_bytes();
  block.state_size = static_cast<std::uint32_t>(size);
  resize(block.lives, roster.slots.size());
  resize(block.states, roster.slots.size() * size);
  for (std::size_t i = ready; i < roster.slots.size(); ++i) {
    program.init(block.states.data() + i * size);
  }
}

}  // namespace

Roster& Units::roster(const Turn& turn, Run& run, std::uint32_t worker, core::Mode mode,
                      bool scalars) {
  const std::uint32_t number = run.rosters.find(worker, mode, scalars);
  if (number != kNoRoster) return run.rosters[number];
  turn.part.cut.touch_roster(run, static_cast<std::uint32_t>(run.rosters.size()));
  return run.rosters.add(worker, mode, scalars, turn.rules().rows.size());
}

std::uint32_t Units::slot(const Turn& turn, Run& run, Roster& roster, std::uint64_t name,
                          std::uint64_t meta, std::uint32_t guess) {
  if (guess < roster.slots.size() && roster.slots[guess].name == name) return guess;
  const std::uint32_t found = roster.index.find(name);
  if (found != FlatIndex::kNone) return found;
  if (run.rosters.units >= options_.config.max_units_per_run) {
    ++stats_.refused_units;
    return RowBatch::kSkip;
  }
  ++run.rosters.units;
  const auto number = static_cast<std::uint32_t>(roster.slots.size());
  turn.part.cut.touch_slot(run, run.rosters.number_of(roster), number);
  roster.index.insert(name, number);
  roster.slots.push_back({name, kNever});
  const auto type = static_cast<std::uint16_t>(meta & 0xFFFF);
  roster.types.push_back(type);
  roster.losses = roster.losses || core::meta::role(meta) == core::Role::loss;
  return number;
}

std::span<const std::uint64_t> Units::shapes(const Run& run, Roster& roster) {
  if (roster.shapes.size() == roster.slots.size() && roster.shapes_version == run.names.version) {
    return roster.shapes;
  }
  roster.shapes_version = run.names.version;
  roster.shapes.clear();
  for (const Slot& slot : roster.slots) {
    roster.shapes.push_back(
        shape_hash(run.workers[roster.worker].about(slot.name, run.names.table)));
  }
  return roster.shapes;
}

// Decides for new slots, and again for those whose dictionary entry was missing, which rules look.
void Units::resolve(const Turn& turn, Run& run, Roster& roster) {
  const bool again = roster.unresolved && roster.names_version != run.names.version;
  const std::size_t first = again ? 0 : roster.wanted.size();
  if (first == roster.slots.size()) return;
  const auto roster_number = run.rosters.number_of(roster);
  turn.part.cut.touch_roster(run, roster_number);
  turn.part.cut.touch_slots(run, roster_number, first);
  roster.names_version = run.names.version;
  if (again) roster.unresolved = false;
  roster.wanted.resize(roster.slots.size());
  if (first == 0) {
    for (Block& block : roster.blocks) block.picks.clear();
  }
  for (std::size_t i = first; i < roster.slots.size(); ++i)
    choose_rows(turn, run, roster, i, first);
}

// Units from `first` on are new, or looked at again.
void Units::choose_rows(const Turn& turn, Run& run, Roster& roster, std::size_t unit,
                        std::size_t first) {
  const Candidate candidate = candidate_of(run, roster, unit);
  for (std::size_t r = 0; r < turn.rules().rows.size(); ++r) {
    const RowProgram& program = *turn.rules().rows[r].program;
    if (!program.common.wants_mode(roster.mode) ||
        !wants_worker(program.common, run.workers[roster.worker])) {
      continue;
    }
    if (withholds_tensors(run, program) && !roster.scalars) {
      ++stats_.withheld_units;
      continue;
    }
    Block& block = roster.blocks[r];
    if (block.applies.size() < first || block.lives.size() < first) {
      // Older units get what they had no use for.
      turn.part.cut.touch_slots(run, run.rosters.number_of(roster));
    }
    block.applies.resize(roster.slots.size());
    Match& applies = block.applies[unit];
    if (applies == Match::unknown) applies = program.selects(candidate);
    roster.unresolved = roster.unresolved || applies == Match::unknown;
    if (applies == Match::yes) block.picks.add(static_cast<std::uint32_t>(unit));
    if (applies == Match::yes || !block.lives.empty()) grow(program, block, roster);
  }
  if (roster.wanted[unit] == Match::unknown) choose_series(turn, run, roster, unit, candidate.role);
}

// Whether any rule of series wants the unit.
void Units::choose_series(const Turn& turn, const Run& run, Roster& roster, std::size_t unit,
                          core::Role role) {
  const Name* name = run.names.table.find(roster.slots[unit].name);
  Match& wanted = roster.wanted[unit];
  wanted = Match::no;
  // A loss that is a tensor stands apart from scalars and from those of other modes.
  const bool apart = run.course.shards > 1 && !roster.scalars;
  for (const auto& series : turn.rules().series) {
    Match match = series.program->selection.matches(role, name);
    if (apart && match == Match::yes) {
      ++stats_.withheld_units;
      match = Match::no;
    }
    if (match == Match::yes || wanted == Match::no) wanted = match;
    if (match == Match::yes) break;
  }
  roster.unresolved = roster.unresolved || wanted == Match::unknown;
}

}  // namespace tocsin::rules

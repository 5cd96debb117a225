#include "rules/engine/memory/rosters.h"

namespace tocsin::rules {
namespace {

std::size_t place_of(core::Mode mode, bool scalars) { return at(mode) * 2 + (scalars ? 1 : 0); }

}  // namespace

Rosters::Numbers& Rosters::numbers(std::uint32_t worker) {
  if (worker >= index_.size()) {
    Numbers none;
    none.fill(kNoRoster);
    index_.resize(std::size_t{worker} + 1, none);
  }
  return index_[worker];
}

std::uint32_t Rosters::find(std::uint32_t worker, core::Mode mode, bool scalars) const {
  return worker < index_.size() ? index_[worker][place_of(mode, scalars)] : kNoRoster;
}

Roster& Rosters::add(std::uint32_t worker, core::Mode mode, bool scalars, std::size_t rules) {
  numbers(worker)[place_of(mode, scalars)] = static_cast<std::uint32_t>(list_.size());
  Roster& fresh = list_.emplace_back();
  fresh.worker = worker;
  fresh.mode = mode;
  fresh.scalars = scalars;
  fresh.blocks.resize(rules);
  return fresh;
}

void Rosters::index(std::size_t workers) {
  for (std::uint32_t i = 0; i < list_.size(); ++i) {
    Roster& roster = list_[i];
    for (std::uint32_t k = 0; k < roster.slots.size(); ++k)
      roster.index.insert(roster.slots[k].name, k);
    for (Block& block : roster.blocks) block.picks.find(block.applies);
    if (roster.worker >= workers) continue;
    numbers(roster.worker)[place_of(roster.mode, roster.scalars)] = i;
  }
}

}  // namespace tocsin::rules

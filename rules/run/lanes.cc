#include "rules/run/lanes.h"

namespace tocsin::rules {
namespace {

std::size_t place_of(core::Mode mode, bool scalars) { return at(mode) * 2 + (scalars ? 1 : 0); }

}  // namespace

Lanes::Places& Lanes::places(std::uint32_t worker) {
  if (worker >= index_.size()) {
    Places none;
    none.fill(kNoLane);
    index_.resize(std::size_t{worker} + 1, none);
  }
  return index_[worker];
}

std::uint32_t Lanes::find(std::uint32_t worker, core::Mode mode, bool scalars) const {
  return worker < index_.size() ? index_[worker][place_of(mode, scalars)] : kNoLane;
}

Lane& Lanes::add(std::uint32_t worker, core::Mode mode, bool scalars, std::size_t rules) {
  places(worker)[place_of(mode, scalars)] = static_cast<std::uint32_t>(list_.size());
  Lane& fresh = list_.emplace_back();
  fresh.worker = worker;
  fresh.mode = mode;
  fresh.scalars = scalars;
  fresh.blocks.resize(rules);
  return fresh;
}

void Lanes::index(std::size_t workers) {
  for (std::uint32_t i = 0; i < list_.size(); ++i) {
    Lane& lane = list_[i];
    for (std::uint32_t k = 0; k < lane.slots.size(); ++k) lane.index.insert(lane.slots[k].name, k);
    if (lane.worker >= workers) continue;
    places(lane.worker)[place_of(lane.mode, lane.scalars)] = i;
  }
}

}  // namespace tocsin::rules

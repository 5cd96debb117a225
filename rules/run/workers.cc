#include "rules/run/workers.h"

namespace tocsin::rules {
namespace {

// What the step clock needs to know of a worker.
StepClock::Presence standing_of(const Worker& worker) {
  StepClock::Presence out;
  out.present = !worker.agent;
  out.gone = worker.gone;
  out.counted = !worker.agent && !worker.gone && !worker.idle;
  out.active = worker.active;
  out.pass = worker.pass;
  out.mark = worker.mark;
  out.seen = worker.seen;
  return out;
}

}  // namespace

std::uint32_t Workers::find(std::uint64_t name, std::uint32_t rank) const {
  const auto found = index_.find({name, rank});
  return found == index_.end() ? kNone : found->second;
}

std::uint32_t Workers::add(Worker worker) {
  const auto number = static_cast<std::uint32_t>(list_.size());
  index_.emplace(std::pair{worker.name_hash, worker.rank}, number);
  list_.push_back(std::move(worker));
  return number;
}

void Workers::sync(std::uint32_t number) { clock_.update(number, standing_of(list_[number])); }

void Workers::index() {
  for (std::uint32_t i = 0; i < list_.size(); ++i) {
    index_[{list_[i].name_hash, list_[i].rank}] = i;
    sync(i);
  }
}

}  // namespace tocsin::rules

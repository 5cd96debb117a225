#include "rules/engine/memory/workers.h"

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

std::uint64_t key_of(std::uint64_t name, std::uint32_t rank) {
  return name ^ (std::uint64_t{rank} << 32 | rank);
}

}  // namespace

std::uint32_t Workers::find(std::uint64_t name, std::uint32_t rank) const {
  const std::uint32_t number = index_.find(key_of(name, rank));
  if (number == FlatIndex::kNone) return kNone;
  if (list_[number].name_hash == name && list_[number].rank == rank) return number;
  const auto found = clashes_.find({name, rank});
  return found == clashes_.end() ? kNone : found->second;
}

void Workers::enter(std::uint32_t number) {
  const Worker& worker = list_[number];
  const std::uint64_t key = key_of(worker.name_hash, worker.rank);
  if (index_.find(key) == FlatIndex::kNone) {
    index_.insert(key, number);
  } else if (find(worker.name_hash, worker.rank) == kNone) {
    clashes_.emplace(std::pair{worker.name_hash, worker.rank}, number);
  }
}

std::uint32_t Workers::add(Worker worker) {
  const auto number = static_cast<std::uint32_t>(list_.size());
  list_.push_back(std::move(worker));
  enter(number);
  return number;
}

void Workers::sync(std::uint32_t number) { clock_.update(number, standing_of(list_[number])); }

void Workers::index() {
  for (std::uint32_t i = 0; i < list_.size(); ++i) {
    enter(i);
    sync(i);
  }
}

const Name* RowBatch::about(const Row& row) const {
  if (names == nullptr) return nullptr;
  return worker == nullptr ? names->find(row.name()) : worker->about(row.name(), *names);
}

}  // namespace tocsin::rules

#include "rules/engine/memory/launches.h"

#include <algorithm>
#include <limits>

namespace tocsin::rules {
namespace {

constexpr std::size_t kRemembered = 8;  // attempts whose processes are still told apart

}  // namespace

std::uint32_t Launches::number_of(std::string_view key) {
  const auto found = std::find(keys_.begin(), keys_.end(), key);
  if (found == keys_.end()) keys_.emplace_back(key);
  return static_cast<std::uint32_t>(std::find(keys_.begin(), keys_.end(), key) - keys_.begin());
}

// The other processes of the same worker.
template <typename F>
void Launches::for_others(const ProcessId& process, F&& visit) const {
  auto at = processes_.lower_bound({process.worker, process.rank, 0});
  for (; at != processes_.end() && at->first.worker == process.worker &&
         at->first.rank == process.rank;
       ++at) {
    if (at->first.incarnation != process.incarnation) visit(at->first, at->second);
  }
}

// Does its worker take part there already, by another process? That its start was not seen does not
// count: records get lost. One that came along from an older attempt only keeps the place; but
// where the start that opened the attempt was lost, those that came along may be of the same launch
// as what opened it. Then it is another launch: a stop that was meant for the one must not reach the
// other.
bool Launches::another_in(const ProcessId& process, const Attempt& attempt) const {
  bool out = false;
  for_others(process, [&](const ProcessId&, const Process& other) {
    out = out || (other.attempt == attempt.number && other.order != 0 &&
                  !(other.moved && attempt.started));
  });
  return out;
}

// Was its worker started again since, in whatever attempt? The log decides, not the clocks that
// incarnations come from: those step back.
bool Launches::replaced(const ProcessId& process) const {
  const auto known = processes_.find(process);
  const std::uint32_t order = known == processes_.end() ? 0 : known->second.order;
  bool out = false;
  for_others(process,
             [&](const ProcessId&, const Process& other) { out = out || other.order > order; });
  return out;
}

// The latest process of this worker in the newest attempt.
std::optional<ProcessId> Launches::newest_of(const ProcessId& process) const {
  std::optional<ProcessId> out;
  std::uint32_t order = 0;
  for_others(process, [&](const ProcessId& id, const Process& other) {
    if (other.attempt != attempt() || other.order <= order) return;
    out = id;
    order = other.order;
  });
  return out;
}

const Launches::Attempt* Launches::older_with(std::uint32_t key) const {
  if (key == 0) return nullptr;
  for (std::size_t i = attempts_.size() - 1; i-- > 0;) {
    if (attempts_[i].key == key) return &attempts_[i];
  }
  return nullptr;
}

// Whoever never told its key has that of the attempt in which it was heard. If that was wrong, it being
// an early process of the launch to come, its next heartbeat says so.
std::uint32_t Launches::key_of(const Process& process) const {
  if (process.key != 0) return process.key;
  const auto its = std::find_if(attempts_.begin(), attempts_.end(),
                                [&](const Attempt& one) { return one.number == process.attempt; });
  return its == attempts_.end() ? 0 : its->key;
}

void Launches::add_attempt(std::uint32_t header, std::uint32_t key, bool started) {
  const std::uint32_t next = attempts_.empty() ? 1 : attempt() + 1;
  attempts_.push_back({std::max(header, next), key, started});
  if (attempts_.size() <= kRemembered) return;
  attempts_.erase(attempts_.begin());
  const std::uint32_t oldest = attempts_.front().number;
  std::erase_if(processes_, [&](const auto& entry) { return entry.second.attempt < oldest; });
  // Keys that nobody has any more make room.
  std::vector<std::string> kept{std::string()};
  std::vector<std::uint32_t> places(keys_.size(), 0);
  const auto keep = [&](std::uint32_t& number) {
    if (number == 0) return;
    if (places[number] == 0) {
      places[number] = static_cast<std::uint32_t>(kept.size());
      kept.push_back(keys_[number]);
    }
    number = places[number];
  };
  for (Attempt& one : attempts_) keep(one.key);
  for (auto& [id, process] : processes_) keep(process.key);
  keys_ = std::move(kept);
}

Launches::Process& Launches::enter(const ProcessId& process, std::uint32_t key, bool started) {
  Process& its = processes_[process];
  its = {};
  its.key = key;
  its.order = ++order_;
  its.started = started;
  its.accepted = true;
  return its;
}

Launches::Standing Launches::open(const ProcessId& process, std::uint32_t key, std::uint32_t header,
                                  bool started) {
  // Not of an old attempt either: those may be forgotten right now.
  enter(process, key, started).attempt = std::numeric_limits<std::uint32_t>::max();
  add_attempt(header, key, started);
  processes_[process].attempt = attempt();
  return Standing::opened;
}

Launches::Standing Launches::join(const ProcessId& process, std::uint32_t key, bool started) {
  if (attempts_.back().key == 0) attempts_.back().key = key;
  enter(process, key, started).attempt = attempt();
  return Standing::current;
}

Launches::Standing Launches::start(const ProcessId& process, std::string_view text,
                                   std::uint32_t header, bool ended) {
  const auto known = processes_.find(process);
  if (known != processes_.end() && known->second.started) return frame(process, header, ended);
  const std::uint32_t key = number_of(text);
  if (attempts_.empty()) return open(process, key, header, true);
  const bool fits = agree(key, attempts_.back().key);
  if (fits && !ended && !another_in(process, attempts_.back())) return join(process, key, true);
  if (!fits) {
    const Attempt* older = older_with(key);
    // There once already: then it is a launch that has got an old key again.
    if (older != nullptr && !another_in(process, *older)) {
      Process& its = processes_[process];
      its = {};
      its.attempt = older->number;
      its.key = key;
      its.started = true;
      return Standing::late;
    }
  }
  return open(process, key, header, true);
}

Launches::Standing Launches::heartbeat(const ProcessId& process, std::string_view text,
                                       std::uint32_t header, bool ended) {
  const auto known = processes_.find(process);
  if (known == processes_.end() || known->second.started || known->second.key != 0 ||
      text.empty()) {
    return frame(process, header, ended);
  }
  const std::uint32_t key = number_of(text);
  Process& its = known->second;
  its.key = key;
  if (its.attempt != attempt() || agree(key, attempts_.back().key)) {
    if (its.attempt == attempt() && attempts_.back().key == 0) attempts_.back().key = key;
    return frame(process, header, ended);
  }
  if (const Attempt* older = older_with(key)) {
    its.attempt = older->number;
    return Standing::stale;
  }
  return open(process, key, header, false);
}

Launches::Standing Launches::frame(const ProcessId& process, std::uint32_t header, bool ended) {
  const auto known = processes_.find(process);
  if (known != processes_.end()) {
    Process& its = known->second;
    if (its.attempt == attempt()) {
      if (ended || replaced(process)) return Standing::stale;
      its.accepted = true;
      return Standing::current;
    }
    if (ended || !agree(key_of(its), attempts_.back().key) || replaced(process)) {
      return Standing::stale;
    }
    its.attempt = attempt();
    // Its worker's next start replaces it; but whose start was not seen may be of this very launch.
    its.moved = its.moved || its.started;
    its.started = false;
    its.accepted = true;
    return Standing::moved;
  }
  if (attempts_.empty()) return open(process, 0, header, false);
  const std::optional<ProcessId> newest = newest_of(process);
  if (newest && process.incarnation < newest->incarnation) {
    processes_[process] = {};  // of a launch that is not remembered
    return Standing::stale;
  }
  // No start was seen. A worker that is here already with an earlier process, and states a later
  // attempt, was launched again; so was whoever speaks up after the end.
  if (ended || (newest && header > attempt())) return open(process, 0, header, false);
  return join(process, 0, false);
}

Launches::Standing Launches::stated(std::uint32_t header, bool ended) {
  if (attempts_.empty() || header > attempt()) {
    add_attempt(header, 0, false);
    return Standing::opened;
  }
  return header < attempt() || ended ? Standing::stale : Standing::current;
}

bool Launches::holds(std::uint64_t worker, std::uint64_t incarnation) const {
  for (auto at = processes_.lower_bound({worker, 0, 0});
       at != processes_.end() && at->first.worker == worker; ++at) {
    if (at->first.incarnation == incarnation) return at->second.attempt == attempt();
  }
  return false;
}

bool Launches::first_of_unwatched(const ProcessId& process) {
  const auto known = processes_.find(process);
  if (known == processes_.end() || known->second.accepted || known->second.told) return false;
  known->second.told = true;
  return true;
}

}  // namespace tocsin::rules

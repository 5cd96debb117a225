#include "rules/launches.h"

#include <algorithm>

namespace tocsin::rules {
namespace {

constexpr std::size_t kRemembered = 8;  // attempts whose processes are still told apart

}  // namespace

std::uint32_t Launches::number_of(std::string_view key) {
  const auto found = std::find(keys_.begin(), keys_.end(), key);
  if (found == keys_.end()) keys_.emplace_back(key);
  return static_cast<std::uint32_t>(std::find(keys_.begin(), keys_.end(), key) - keys_.begin());
}

bool Launches::started_in(const ProcessId& process, std::uint32_t attempt) const {
  auto at = processes_.lower_bound({process.worker, process.rank, 0});
  for (; at != processes_.end() && at->first.worker == process.worker &&
         at->first.rank == process.rank;
       ++at) {
    if (at->second.attempt == attempt && at->second.started) return true;
  }
  return false;
}

// Was its worker started again since, in whatever attempt?
bool Launches::replaced(const ProcessId& process) const {
  const auto next = processes_.upper_bound(process);
  return started_in(process, attempt()) ||
         (next != processes_.end() && next->first.worker == process.worker &&
          next->first.rank == process.rank);
}

// The latest process of this worker in the newest attempt.
const Launches::Process* Launches::newest_of(const ProcessId& process, ProcessId* id) const {
  const Process* out = nullptr;
  auto at = processes_.lower_bound({process.worker, process.rank, 0});
  for (; at != processes_.end() && at->first.worker == process.worker &&
         at->first.rank == process.rank;
       ++at) {
    if (at->second.attempt != attempt()) continue;
    out = &at->second;
    *id = at->first;
  }
  return out;
}

const Launches::Attempt* Launches::older_with(std::uint32_t key) const {
  if (key == 0) return nullptr;
  for (std::size_t i = attempts_.size() - 1; i-- > 0;) {
    if (attempts_[i].key == key) return &attempts_[i];
  }
  return nullptr;
}

void Launches::add_attempt(std::uint32_t header, std::uint32_t key) {
  const std::uint32_t next = attempts_.empty() ? 1 : attempt() + 1;
  attempts_.push_back({std::max(header, next), key});
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

Launches::Verdict Launches::open(const ProcessId& process, std::uint32_t key, std::uint32_t header,
                                 bool started) {
  processes_[process] = {0, key, started, true, false};
  add_attempt(header, key);
  processes_[process].attempt = attempt();
  return Verdict::opened;
}

Launches::Verdict Launches::join(const ProcessId& process, std::uint32_t key, bool started) {
  if (attempts_.back().key == 0) attempts_.back().key = key;
  processes_[process] = {attempt(), key, started, true, false};
  return Verdict::current;
}

Launches::Verdict Launches::start(const ProcessId& process, std::string_view text,
                                  std::uint32_t header, bool ended) {
  const auto known = processes_.find(process);
  if (known != processes_.end() && known->second.started) return frame(process, header, ended);
  const std::uint32_t key = number_of(text);
  if (attempts_.empty()) return open(process, key, header, true);
  const bool fits = agree(key, attempts_.back().key);
  if (fits && !ended && !started_in(process, attempt())) return join(process, key, true);
  if (!fits) {
    const Attempt* older = older_with(key);
    // Started there once already: then it is a launch that has got an old key again.
    if (older != nullptr && !started_in(process, older->number)) {
      processes_[process] = {older->number, key, true, false, false};
      return Verdict::late;
    }
  }
  return open(process, key, header, true);
}

Launches::Verdict Launches::heartbeat(const ProcessId& process, std::string_view text,
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
    return Verdict::stale;
  }
  return open(process, key, header, false);
}

Launches::Verdict Launches::frame(const ProcessId& process, std::uint32_t header, bool ended) {
  const auto known = processes_.find(process);
  if (known != processes_.end()) {
    Process& its = known->second;
    if (its.attempt == attempt()) {
      if (ended) return Verdict::stale;
      its.accepted = true;
      return Verdict::current;
    }
    if (ended || !agree(its.key, attempts_.back().key) || replaced(process)) {
      return Verdict::stale;
    }
    its.attempt = attempt();
    its.started = false;  // its worker's next start replaces it
    its.accepted = true;
    return Verdict::moved;
  }
  if (attempts_.empty()) return open(process, 0, header, false);
  ProcessId other;
  const Process* newest = newest_of(process, &other);
  if (newest != nullptr && process.incarnation < other.incarnation) {
    processes_[process] = {0, 0, false, false, false};  // of a launch that is not remembered
    return Verdict::stale;
  }
  // No start was seen. A worker that is here already with an earlier process, and states a later
  // attempt, was launched again; so was whoever speaks up after the end.
  if (ended || (newest != nullptr && header > attempt())) return open(process, 0, header, false);
  return join(process, 0, false);
}

Launches::Verdict Launches::stated(std::uint32_t header, bool ended) {
  if (attempts_.empty() || header > attempt()) {
    add_attempt(header, 0);
    return Verdict::opened;
  }
  return header < attempt() || ended ? Verdict::stale : Verdict::current;
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

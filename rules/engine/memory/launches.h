// Which launch a record belongs to. Attempts are settled in the order of the log: no clock decides
// and no rank asks another (docs/launches.md). Pure: values in, values out; part of a run's state.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rules/contract/archive.h"

namespace tocsin::rules {

/// One process of a worker: name hash and rank, and when its client opened.
struct ProcessId {
  std::uint64_t worker = 0;
  std::uint32_t rank = 0;
  std::uint64_t incarnation = 0;
  friend auto operator<=>(const ProcessId&, const ProcessId&) = default;
};

class Launches {
 public:
  enum class Standing : std::uint8_t {
    current,  // of the newest attempt
    opened,   // opens attempt(): everything of the one before is over
    moved,    // was of an older one and is of the newest from here on
    stale,    // of an attempt that is over
    late,     // a start that belongs to an older attempt
  };

  /// Number of the newest attempt; 0 before the first.
  [[nodiscard]] std::uint32_t attempt() const noexcept {
    return attempts_.empty() ? 0 : attempts_.back().number;
  }

  /// A start record. `key`: what the processes of one launch share, may be empty; `header`: the
  /// attempt that the record states; `ended`: the newest attempt is over.
  Standing start(const ProcessId& process, std::string_view key, std::uint32_t header, bool ended);
  /// A heartbeat, which tells the key of a process whose start was not seen.
  Standing heartbeat(const ProcessId& process, std::string_view key, std::uint32_t header,
                     bool ended);
  /// Any other record.
  Standing frame(const ProcessId& process, std::uint32_t header, bool ended);
  /// A record that states its attempt itself (JSON).
  Standing stated(std::uint32_t header, bool ended);

  /// Is this a process of the newest attempt?
  [[nodiscard]] bool holds(std::uint64_t worker, std::uint64_t incarnation) const;
  /// True the first time it is asked for a process of which nothing was ever accepted.
  bool first_of_unwatched(const ProcessId& process);

  /// Processes and attempts that are remembered.
  [[nodiscard]] std::size_t size() const noexcept { return processes_.size() + attempts_.size(); }

  template <typename A>
  friend void io(A& a, Launches& l) {
    io_all(a, l.attempts_, l.keys_, l.processes_, l.order_);
  }

 private:
  struct Attempt {
    std::uint32_t number = 0;
    std::uint32_t key = 0;  // place in keys_; 0 = empty
    bool started = false;   // opened by a start record
  };
  struct Process {
    std::uint32_t attempt = 0;
    std::uint32_t key = 0;
    std::uint32_t order = 0;  // grows in the order of the log; 0 = replaces nobody
    bool started = false;     // by a start record, in this attempt
    bool moved = false;       // came along from an older attempt
    bool accepted = false;    // something of it was ever current
    bool told = false;
  };

  [[nodiscard]] bool agree(std::uint32_t one, std::uint32_t two) const noexcept {
    return one == 0 || two == 0 || one == two;
  }
  std::uint32_t number_of(std::string_view key);
  template <typename F>
  void for_others(const ProcessId& process, F&& visit) const;
  [[nodiscard]] bool another_in(const ProcessId& process, const Attempt& attempt) const;
  [[nodiscard]] bool replaced(const ProcessId& process) const;
  [[nodiscard]] std::optional<ProcessId> newest_of(const ProcessId& process) const;
  [[nodiscard]] std::uint32_t key_of(const Process& process) const;
  [[nodiscard]] const Attempt* older_with(std::uint32_t key) const;
  Standing open(const ProcessId& process, std::uint32_t key, std::uint32_t header, bool started);
  Standing join(const ProcessId& process, std::uint32_t key, bool started);
  Process& enter(const ProcessId& process, std::uint32_t key, bool started);
  void add_attempt(std::uint32_t header, std::uint32_t key, bool started);

  std::vector<Attempt> attempts_;  // the newest last; older ones are forgotten in time
  std::vector<std::string> keys_{std::string()};
  std::map<ProcessId, Process> processes_;
  std::uint32_t order_ = 0;
};

}  // namespace tocsin::rules

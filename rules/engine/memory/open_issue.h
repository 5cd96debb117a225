// An issue that fires, as the engine keeps it: its unit in numbers, and what its further reports need.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/codes.h"
#include "rules/contract/archive.h"
#include "rules/contract/row.h"

namespace tocsin::rules {

inline constexpr std::uint32_t kNoRoster = 0xFFFFFFFFU;

/// When something began: steps first, then what a training step does first (input, forward pass,
/// loss, backward pass, update, what is computed from them), then which tensor of it: the forward
/// pass goes from the first layer to the last, the backward pass the other way.
struct Onset {
  std::int64_t global_step = 0;
  std::uint8_t stage = 0;
  std::uint32_t position = 0;  // among those of the stage; 0: none
  friend auto operator<=>(const Onset&, const Onset&) = default;

  template <typename A>
  friend void io(A& a, Onset& o) {
    io_all(a, o.global_step, o.stage, o.position);
  }
};

/// The beginning of an issue that others of its run may follow from; without an id: none.
struct Beginning {
  Onset onset;
  std::optional<core::Mode> mode = {};
  std::int64_t step = 0;
  std::string event_id;   // of its first report
  std::string issue_key;  // core::issue_key of its labels
  [[nodiscard]] bool known() const noexcept { return !event_id.empty(); }

  template <typename A>
  friend void io(A& a, Beginning& b) {
    io_all(a, b.onset, b.mode, b.step, b.event_id, b.issue_key);
  }
};

/// Unit of an open issue, in numbers. Series and other units without a roster use kNoRoster − n.
struct OpenKey {
  std::uint32_t rule = 0;
  std::uint32_t roster = 0;
  std::uint64_t item = 0;
  std::uint8_t mode = 0xFF;
  std::uint8_t kind = 0;
  friend auto operator<=>(const OpenKey&, const OpenKey&) = default;
};

/// An issue that fires.
struct Open {
  std::vector<std::pair<std::string, std::string>> unit;  // labels that the rule adds
  std::string kind;
  std::uint32_t worker = kNoRoster;
  core::Severity severity = core::Severity::warning;
  std::int64_t starts_at = 0;
  std::int64_t last_report = 0;
  std::optional<core::Mode> mode = {};  // of its newest report,
  std::int64_t last_step = 0;           // and where that stood
  std::uint64_t occurrences = 0;
  std::string observed_name;
  double observed = 0;
  Beginning beginning = {};
  std::string words = {};  // found_words() of its first report, or of the first more severe one
  core::Severity found_severity = core::Severity::info;  // of that report

  template <typename A>
  friend void io(A& a, Open& o) {
    io_all(a, o.unit, o.kind, o.worker, o.severity, o.starts_at, o.last_report, o.mode, o.last_step,
           o.occurrences, o.observed_name, o.observed, o.beginning, o.words, o.found_severity);
  }
};

}  // namespace tocsin::rules

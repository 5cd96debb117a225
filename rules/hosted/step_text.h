// What is said to the process of a hosted rule, and what it answers (docs/rules/python.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/issue.h"
#include "core/result.h"
#include "core/value.h"
#include "rules/contract/step_host.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules::hosted {

/// A completed step with all rows that the rule looks at.
struct KeptStep {
  std::uint8_t mode = 0;
  std::int64_t step = 0;
  std::int64_t global_step = 0;
  std::int64_t time = 0;
  std::vector<StepRow> rows;

  template <typename A>
  friend void io(A& a, KeptStep& s) {
    io_all(a, s.mode, s.step, s.global_step, s.time, s.rows);
  }
};

/// Names that a process has been told of: true with all that a dictionary says of them.
using ToldNames = std::map<std::uint64_t, bool>;

std::string open_request(std::uint64_t session, const HostedRule& rule, const Scope& scope,
                         const std::string& saved);
/// `judge` false: of the past, only to be looked at. `kept`: so many steps before it can still be
/// looked at.
std::string step_request(std::uint64_t session, const KeptStep& step, std::size_t kept,
                         const Scope& scope, ToldNames& told, bool judge);

/// One thing that the rule has to tell at a step.
struct Told {
  std::string key;    // of the unit; empty: the run
  std::string label;  // what the key is: "tensor", "key"
  std::string summary;
  std::string recommendation;
  std::optional<core::Severity> severity;
  core::NamedNumber observed;
  std::string op;
  std::optional<core::NamedNumber> threshold;
  core::ValueMap values;
};

struct Answer {
  EvaluationOutcome outcome = EvaluationOutcome::ok;
  std::vector<Told> issues;
  std::optional<std::string> saved;  // what the rule remembers, when it has changed
  std::string error;                 // of EvaluationOutcome::error
};

/// data_loss: no answer of this protocol.
core::Result<Answer> read_answer(std::string_view text);

}  // namespace tocsin::rules::hosted

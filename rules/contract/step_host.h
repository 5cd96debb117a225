// Rules whose judge is another process: the port through which the engine speaks to it. The engine
// keeps records, clocks, attempts, state and issues; the process gets completed steps and answers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/result.h"
#include "core/time.h"
#include "core/value.h"

namespace tocsin::rules {

/// What a process has to be told to judge as this rule.
struct HostedRule {
  std::string name;        // of the rule
  std::string source;      // absolute path of the file
  std::string content;     // of the file, which its version speaks of; empty: as it is then
  std::string class_name;  // empty: the only rule in the file
  core::ValueMap parameters;
  core::Duration timeout = std::chrono::seconds(10);        // of one step
  core::Duration start_timeout = std::chrono::seconds(60);  // until the file is imported
  std::uint64_t memory = std::uint64_t{2} << 30;            // bytes of address space
};

/// Processes of hosted rules, one per rule. Belongs to one thread, like the engine that asks.
class StepHost {
 public:
  virtual ~StepHost() = default;
  /// Starts the process where none runs, and waits before that when it failed lately. Returns its
  /// number, which no other has had: who is known to another number is not known to this one.
  /// unavailable: it cannot be started, or its file cannot be used; the text says why.
  virtual core::Result<std::uint64_t> ready(const HostedRule& rule) = 0;
  /// One request (JSON, docs/rules/python.md), one answer, within the rule's time-out.
  /// deadline_exceeded: no answer; the process was ended. unavailable: it ended by itself. Both
  /// with the last lines that it printed.
  virtual core::Result<std::string> ask(const HostedRule& rule, std::string_view request) = 0;
  /// A session of a run that nobody asks for any more: told with the next request.
  virtual void forget(const HostedRule& rule, std::uint64_t session) = 0;
  /// A number for a session, not used before.
  virtual std::uint64_t session() = 0;
};

}  // namespace tocsin::rules

// Processes that judge steps for the engine: one per hosted rule, spoken to over a socket pair
// (docs/rules/python.md). What goes wrong in one is an error of its rule and of nothing else.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/log.h"
#include "rules/embedded/embedded.h"
#include "rules/rules.h"

namespace tocsin::app {

class RuleProcesses final : public rules::StepHost {
 public:
  RuleProcesses(embedded::PluginsConfig plugins, const core::Clock& clock, core::Log& log);
  /// Ends all of them.
  ~RuleProcesses() override;

  core::Result<std::uint64_t> ready(const rules::HostedRule& rule) override;
  core::Result<std::string> ask(const rules::HostedRule& rule, std::string_view request) override;
  void forget(const rules::HostedRule& rule, std::uint64_t session) override;
  std::uint64_t session() override { return ++sessions_; }

  /// The rules that a file defines. An error as of ready().
  core::Result<std::vector<std::string>> classes(const rules::HostedRule& rule);

 private:
  struct Hosted;  // of a rule's process, there or not

  Hosted& hosted(const rules::HostedRule& rule);
  core::Result<std::string> start(const rules::HostedRule& rule, Hosted& hosted, bool list);
  void failed(const rules::HostedRule& rule, Hosted& hosted, const core::Error& error);

  embedded::PluginsConfig plugins_;
  const core::Clock& clock_;
  core::Log& log_;
  std::map<std::string, std::unique_ptr<Hosted>> hosted_;  // by name of the rule
  std::uint64_t started_ = 0;
  std::uint64_t sessions_ = 0;
};

}  // namespace tocsin::app

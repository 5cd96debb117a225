// A rule whose steps are judged by another process: it has the shape of a step set over all workers.
#pragma once

#include <memory>

#include "rules/contract/rule.h"
#include "rules/contract/step_host.h"

namespace tocsin::rules::hosted {

struct HostedConfig {
  std::shared_ptr<const HostedRule> rule;
  std::uint32_t history = 200;  // steps behind the newest that the rule may look at
};

class HostedProgram final : public Program {
 public:
  HostedConfig config;
  [[nodiscard]] std::uint32_t inputs() const noexcept override;
  [[nodiscard]] std::unique_ptr<Evaluator> evaluator() const override;
};

}  // namespace tocsin::rules::hosted

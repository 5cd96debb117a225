// What the tests of the rule `reward` share: an agent that trains, and what its hook counts.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/support/rule_harness.h"
#include "tests/unit/rules/evidence/noise.h"

namespace tocsin::rules::reward_support {

using namespace testing_support;  // NOLINT: the harness is this file's language
using core::Mode;
using core::Role;

using Values = std::map<std::string, double>;

/// A training that logs and counts. Names without a room are logged.
struct Agent : SteppedJob {
  explicit Agent(std::uint64_t seed = 1, const std::string& with = "{}")
      : SteppedJob{RuleHarness::of("reward", with)}, chance(seed) {}

  Agent& say(const Values& values) {
    std::vector<Scalar> scalars;
    std::vector<Entry> entries;
    for (const auto& [name, value] : values) {
      const Role role = name.starts_with("ledger/") ? Role::ledger : Role::metric;
      scalars.push_back({name, step, value, role});
      entries.push_back({core::DictionaryType::scalar, name, role});
    }
    rule.feed(worker.dictionary(entries));
    rule.feed(worker.scalars(mode, scalars));
    end();
    return *this;
  }
  Agent& go(int steps, const std::function<Values(double)>& at) {
    for (int i = 0; i < steps; ++i) say(at(static_cast<double>(i) / steps));
    return *this;
  }
  std::string kinds() {
    std::string out;
    for (const core::Issue& issue : rule.firing()) {
      out += (out.empty() ? "" : " ") + issue.kind;
    }
    return out;
  }
  std::string summary() {
    const auto issues = rule.firing();
    return issues.empty() ? "" : issues[0].summary;
  }
  double noisy(double mean, double deviation = 1) { return mean + deviation * chance.normal(); }

  Noise chance;
};

inline Values reward_ledger(const Values& fields) {
  Values out;
  for (const auto& [name, value] : fields) out["ledger/reward/" + name] = value;
  return out;
}
inline Values target_ledger(double updates, double moves, double changes, double equal) {
  return {{"ledger/target/target_net/updates", updates},
          {"ledger/target/target_net/looks", updates},
          {"ledger/target/target_net/moves", moves},
          {"ledger/target/target_net/changes", changes},
          {"ledger/target/target_net/equal", equal}};
}
/// `transitions` with one reward, in episodes of `length` that all return the same.
inline Values constant_reward(double transitions, double length, double episode_return) {
  const double episodes = transitions / length;
  return reward_ledger({{"transitions", transitions},
                        {"episodes", episodes},
                        {"returns", episodes * episode_return},
                        {"squares", episodes * episode_return * episode_return},
                        {"seen/reward", transitions},
                        {"changes/reward", 0}});
}

}  // namespace tocsin::rules::reward_support

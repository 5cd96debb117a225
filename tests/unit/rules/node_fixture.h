// A node whose agent sends sweeps of system samples, two a second, from a full minute on.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/support/rule_harness.h"

namespace tocsin::testing_support {

inline constexpr std::int64_t kMinute = 60 * kSecond;

struct Node {
  RuleHarness rule;
  FakeWorker agent{"digits", "exploding", core::kNodeAgentRank};
  std::int64_t time = kStart - kStart % kMinute;

  Node(const std::string& type, const std::string& with, const std::vector<std::string>& series,
       const std::string& name = "node-7")
      : rule(RuleHarness::of(type, with)) {
    agent.header.worker = core::name_hash(name);
    std::vector<Entry> names{{core::DictionaryType::node, name}};
    for (const auto& one : series) names.push_back({core::DictionaryType::series, one});
    rule.feed(agent.dictionary(names));
  }
  void sweep(const std::vector<std::pair<std::string, double>>& values) {
    std::vector<Sample> samples;
    for (const auto& [series, value] : values) samples.push_back({series, time, value});
    rule.feed(agent.system(samples));
    time += kSecond / 2;
  }
  void sweeps(int count, const std::vector<std::pair<std::string, double>>& values) {
    for (int i = 0; i < count; ++i) sweep(values);
  }
  /// The run ends: what is open is judged.
  void end() { rule.feed(FakeWorker().end()); }
};

inline std::string gpu(const std::string& id) { return "hw.gpu.utilization{hw.id=" + id + "}"; }
inline std::string gpu_memory(const std::string& id) {
  return "hw.gpu.memory.utilization{hw.id=" + id + "}";
}
inline std::string core_mode(const std::string& number, const std::string& mode) {
  return "system.cpu.utilization{cpu.logical_number=" + number + ",cpu.mode=" + mode + "}";
}

}  // namespace tocsin::testing_support

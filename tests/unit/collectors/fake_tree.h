// Folders that stand in for /proc and /sys: written by the test, removed with it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "collectors/collectors.h"

namespace tocsin::collectors {

class FakeTree {
 public:
  FakeTree() {
    std::string pattern = (std::filesystem::temp_directory_path() / "collectors.XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    root_ = pattern;
  }
  ~FakeTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  FakeTree(const FakeTree&) = delete;
  FakeTree& operator=(const FakeTree&) = delete;

  /// Writes "proc/stat", "sys/…": in place, so that an open descriptor sees the new text.
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
  }
  void remove(const std::string& path) const { std::filesystem::remove_all(root_ / path); }
  [[nodiscard]] Roots roots() const {
    return {(root_ / "proc").string(), (root_ / "sys").string()};
  }

 private:
  std::filesystem::path root_;
};

/// Recorded files of a real machine: tests/data/proc/<machine>/<moment> (tests run in the root of
/// the repository).
inline Roots recorded(const std::string& moment) {
  return {"tests/data/proc/vm_2cpu_linux_6_18/" + moment, "tests/data/proc/none"};
}

inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.is_open()) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

inline const CollectorDescriptor& builtin(std::string_view name) {
  for (const CollectorDescriptor& each : builtin_collectors()) {
    if (each.name == name) return each;
  }
  std::abort();
}

/// The collector with the keys of `yaml`.
inline std::unique_ptr<Collector> built(const CollectorDescriptor& descriptor, const Roots& roots,
                                        std::string_view yaml = "{}") {
  config::Diagnostics problems;
  const auto document = config::Document::parse(
      yaml, "t.yaml", [](const std::string&) { return std::nullopt; }, problems);
  std::shared_ptr<const CollectorConfig> own;
  document->read(problems, [&](config::Reader& in) { own = descriptor.read(in); });
  EXPECT_TRUE(problems.items().empty());
  return own->build(roots);
}

/// Is this series one of those that the collector says it gathers?
inline bool declared(const CollectorDescriptor& descriptor, const Series& series) {
  const std::string_view name = series.name;
  const std::string_view metric = name.substr(0, name.find('{'));
  const auto keys = [](std::string_view attributes) {  // "a=…,b=…" → "a,b,"
    std::string out;
    while (!attributes.empty()) {
      const std::string_view pair = attributes.substr(0, attributes.find(','));
      out.append(pair.substr(0, pair.find('='))).append(",");
      attributes.remove_prefix(std::min(attributes.size(), pair.size() + 1));
    }
    return out;
  };
  const bool braces = metric.size() < name.size();
  const std::string_view attributes =
      braces ? name.substr(metric.size() + 1, name.size() - metric.size() - 2) : "";
  return std::any_of(descriptor.gathers.begin(), descriptor.gathers.end(), [&](const auto& each) {
    return each.metric == metric && each.counter == series.counter &&
           keys(each.attributes) == keys(attributes);
  });
}

/// Sweeps one collector at hand-moved times and keeps what the last sweep added, by series name.
class OneCollector {
 public:
  OneCollector(std::string_view name, const Roots& roots, std::string_view yaml = "{}")
      : descriptor_(builtin(name)), collector_(built(descriptor_, roots, yaml)) {}

  core::Status sweep(core::Duration after = std::chrono::milliseconds(500)) {
    now_ += after;
    sweep_.restart(core::WallTime{now_}, now_);
    const core::Status status = collector_->collect(sweep_);
    values.clear();
    counters.clear();
    for (const Sample& sample : sweep_.samples()) {
      EXPECT_TRUE(values.emplace(sample.series->name, sample.value).second)
          << "twice in one sweep: " << sample.series->name;
      EXPECT_TRUE(declared(descriptor_, *sample.series)) << sample.series->name;
      EXPECT_EQ(sample.series->hash, core::name_hash(sample.series->name));
      if (sample.series->counter) counters[sample.series->name] = sample.value;
    }
    return status;
  }

  Collector& operator*() { return *collector_; }
  Collector* operator->() { return collector_.get(); }

  std::map<std::string, double> values;
  std::map<std::string, double> counters;

 private:
  const CollectorDescriptor& descriptor_;
  std::unique_ptr<Collector> collector_;
  core::Duration now_ = std::chrono::hours(1);
  Sweep sweep_{core::WallTime{}, core::Duration{}};
};

}  // namespace tocsin::collectors

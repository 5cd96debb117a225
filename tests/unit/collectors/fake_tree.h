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

/// Sweeps one collector at hand-moved times and keeps what the last sweep added, by series name.
class OneCollector {
 public:
  OneCollector(std::string_view name, const Roots& roots) : collector_(builtin(name).make(roots)) {}

  core::Status sweep(core::Duration after = std::chrono::milliseconds(500)) {
    now_ += after;
    sweep_.restart(core::WallTime{now_}, now_);
    const core::Status status = collector_->collect(sweep_);
    values.clear();
    counters.clear();
    for (const Sample& sample : sweep_.samples()) {
      EXPECT_TRUE(values.emplace(sample.series->name, sample.value).second)
          << "twice in one sweep: " << sample.series->name;
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
  std::unique_ptr<Collector> collector_;
  core::Duration now_ = std::chrono::hours(1);
  Sweep sweep_{core::WallTime{}, core::Duration{}};
};

}  // namespace tocsin::collectors

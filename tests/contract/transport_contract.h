// The suite that every transport passes: its fixture, and a listener that starts at once.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tests/contract/transport_backends.h"

namespace tocsin::tests {

using std::chrono::milliseconds;
using std::chrono::seconds;

class TransportContract : public testing::TestWithParam<BackendKind> {
 protected:
  void SetUp() override {
    auto backend = Backend::open(GetParam());
    ASSERT_TRUE(backend) << backend.error().message;
    backend_ = std::move(*backend);
  }

  void publish(const std::vector<core::OutRecord>& records) {
    auto producer = backend_->producer();
    for (const auto& record : records) {
      const auto status = producer->publish(record);
      ASSERT_TRUE(status) << status.error().message;
    }
    const auto flushed = producer->flush(seconds{20});
    ASSERT_TRUE(flushed) << flushed.error().message;
  }

  static std::vector<core::OutRecord> numbered(int count) {
    std::vector<core::OutRecord> records;
    for (int i = 0; i < count; ++i) {
      records.push_back(record("telemetry", "run-" + std::to_string(i % 5), std::to_string(i)));
    }
    return records;
  }

  std::unique_ptr<Backend> backend_;
};

inline std::vector<std::string> values(const std::vector<Kept>& records) {
  std::vector<std::string> all;
  for (const auto& kept : records) all.push_back(kept.value);
  return all;
}

inline std::vector<std::string> sorted(std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  return texts;
}

/// Asks for the committed positions and starts at once, like an owner without state.
class ResumingListener final : public core::AssignmentListener {
 public:
  void assigned(std::span<const core::Position> committed) override {
    positions.assign(committed.begin(), committed.end());
    ++assignments;
    if (!hold) resume_all();
  }
  void revoked(std::span<const core::StreamPartition>) override { ++revocations; }
  void lost(std::span<const core::StreamPartition>) override { ++losses; }

  void resume_all() {
    std::vector<core::StreamPartition> all;
    for (const auto& position : positions) all.push_back(position.where);
    const auto status = source->resume(all);
    EXPECT_TRUE(status) << status.error().message;
  }

  core::RecordSource* source = nullptr;
  bool hold = false;
  std::vector<core::Position> positions;
  int assignments = 0, revocations = 0, losses = 0;
};

}  // namespace tocsin::tests

// A session over a queue that a test looks into.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectors/hook/publish/session.h"
#include "tests/unit/collectors/hook/fixture.h"

namespace tocsin::hook {

class SessionTest : public ::testing::Test {
 protected:
  Session open(const std::string& capture = "{}", std::uint64_t queue_bytes = 1 << 20) {
    queue_ = std::make_unique<SendQueue>(queue_bytes);
    SessionOptions options;
    options.identity = make_identity();
    options.incarnation = 42;
    return {std::move(options), make_plan(capture), clock_, *queue_};
  }
  static NameInfo tensor_info() {
    NameInfo info;
    info.dtype = core::Dtype::f32;
    return info;
  }
  static NameInfo scalar_info() {
    NameInfo info;
    info.type = core::DictionaryType::scalar;
    return info;
  }
  LentTensor lend(std::uint64_t id, const std::vector<float>& values) {
    extents_.push_back(std::make_unique<std::int64_t>(static_cast<std::int64_t>(values.size())));
    return {id, values.data(), {extents_.back().get(), 1}, {}, core::Dtype::f32, 0};
  }

  ManualClock clock_;
  std::unique_ptr<SendQueue> queue_;
  std::vector<std::unique_ptr<std::int64_t>> extents_;
};

}  // namespace tocsin::hook

// A session that sends elements, and the broker in memory that they go to.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectors/hook/client/raw_reader.h"
#include "core/topics.h"
#include "tests/simulation/broker.h"
#include "tests/unit/collectors/hook/session_fixture.h"

namespace tocsin::hook {

class RawTest : public SessionTest {
 protected:
  static constexpr const char* kGradients = R"({every: 1, collections: {gradients: {raw: true}}})";

  /// `capture`: with a section `raw`, if the queue is to have limits.
  Session open_raw(const std::string& capture = kGradients) {
    raw_ = parse_capture(capture).value().raw;
    raw_queue_ = std::make_unique<RawQueue>(raw_);
    queue_ = std::make_unique<SendQueue>(1 << 20);
    SessionOptions options;
    options.identity = make_identity();
    options.incarnation = 42;
    return {std::move(options), make_plan(capture), clock_, *queue_, raw_queue_.get()};
  }

  std::unique_ptr<RawPlace> topic_place() {
    return raw_topic(broker_.publisher({}).value(), RawFrames("worker_0", raw_.chunk),
                     core::route_key(make_identity().run));
  }

  /// Sends what waits, until nothing does.
  void send_all(RawPlace& place) {
    while (true) {
      const auto taken = raw_queue_->take(16U << 20);
      if (taken.empty()) return;
      const auto put = place.put(taken, [] { return false; });
      ASSERT_TRUE(put) << put.error().message;
      raw_queue_->done(taken);
    }
  }

  RawReader reader() {
    TensorSource source;
    ingest::SourceOptions options;
    options.topics = {core::topic::kTensors};
    options.start = ingest::Start::beginning;
    source.source = broker_.source(options).value();
    return {std::move(source), make_identity().run, raw_};
  }

  static RawQuery query(const std::string& name, std::int64_t step = 0) {
    return {core::name_hash(name), core::name_hash("worker_0"), core::Mode::train, step};
  }

  RawConfig raw_;
  std::unique_ptr<RawQueue> raw_queue_;
  simulation::MemoryBroker broker_;
};

}  // namespace tocsin::hook

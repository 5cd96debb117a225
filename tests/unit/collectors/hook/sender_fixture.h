// A sender over the memory broker, by hand-moved time.
#pragma once

#include <gtest/gtest.h>

#include "collectors/hook/client/client.h"
#include "tests/simulation/broker.h"
#include "tests/unit/collectors/hook/fixture.h"

namespace tocsin::hook {

inline Endpoints endpoints_of(simulation::MemoryBroker& broker) {
  Endpoints out;
  out.publisher = [&broker] { return broker.publisher({}); };
  out.commands = [&broker](core::RecordPublisher&) {
    ingest::SourceOptions options;
    options.topics = {"commands"};
    options.start = ingest::Start::beginning;
    return broker.source(options);
  };
  return out;
}

inline SessionOptions session_options() {
  SessionOptions options;
  options.identity = make_identity();
  return options;
}

class SenderTest : public ::testing::Test {
 protected:
  void step() {
    session_.step_end(false, 1);
    session_.flush();
  }

  ManualClock clock_;
  simulation::MemoryBroker broker_;
  SendQueue queue_{1 << 20};
  Session session_{session_options(), make_plan(), clock_, queue_};
  Trouble trouble_;
  Endpoints endpoints_ = endpoints_of(broker_);
  Sender sender_{endpoints_, session_, queue_, clock_, trouble_};
};

}  // namespace tocsin::hook

// The class of a delivery record fits its state: what was never delivered never says "delivered".
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/actions/lanes.h"

namespace tocsin::actions {
namespace {

using namespace testing_support;
using core::DeliveryState;
using core::NotificationKind;
using core::OutcomeClass;

// state:class of every record since the last call.
std::set<std::string> classes(Lanes& lanes) {
  std::set<std::string> out;
  for (const auto& record : lanes.lanes.take().deliveries) {
    out.insert(std::string(to_string(record.state)) + ":" + std::string(to_string(record.outcome)));
  }
  return out;
}

TEST(DeliveryClass, OfAMessageOfAnIntegrationThatIsGone) {
  Lanes lanes;
  lanes.enqueue("a");
  lanes.enqueue("b", NotificationKind::open, "h");
  lanes.step(OutcomeClass::gone);
  EXPECT_EQ(classes(lanes), (std::set<std::string>{"dead:gone"}));
  lanes.step(OutcomeClass::gone);  // of two messages: it is the far side
  lanes.enqueue("c", NotificationKind::open, "i");
  EXPECT_EQ(classes(lanes), (std::set<std::string>{"dead:gone", "dead:configuration"}));
}

TEST(DeliveryClass, OfAMessageThatExpiredWithoutAnAttempt) {
  Lanes lanes;
  lanes.enqueue("a");
  lanes.now += 1000h;
  EXPECT_EQ(lanes.step(), "");
  EXPECT_EQ(classes(lanes), (std::set<std::string>{"expired:unknown"}));
}

TEST(DeliveryClass, OfAMessageThatAnotherReplaced) {
  Lanes lanes;
  lanes.enqueue("a");
  lanes.step(outcome(OutcomeClass::transient));
  lanes.enqueue("b", NotificationKind::update);
  lanes.enqueue("c", NotificationKind::update);
  for (const std::string& one : classes(lanes)) {
    EXPECT_FALSE(one.ends_with(":delivered") && !one.starts_with("delivered")) << one;
  }
}

}  // namespace
}  // namespace tocsin::actions

// Nothing that an event says is lost or added on its way through a record and back.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "ingest/events/events.h"
#include "tests/support/record_fixture.h"
#include "tests/unit/ingest/any_event.h"
#include "tests/unit/ingest/event_equality.h"

namespace tocsin::ingest {
namespace {

using fixture::view_of;

template <typename T>
const T& whole(const core::Result<T>& result) {
  if (!result) RC_FAIL(result.error().message);
  return *result;
}

template <typename Event>
const Event& event_in(const core::Result<DecodedEvent>& result) {
  return std::get<Event>(whole(result).event);
}

TEST(RoundTrip, AnIssueAsAnEvent) {
  EXPECT_TRUE(rc::check([] {
    const core::Issue issue = any::issue();
    const auto record = encode_issue(issue);
    RC_ASSERT((event_in<core::Issue>(decode_event(view_of(record))) == issue));
  }));
}

TEST(RoundTrip, AJobOnBothTopics) {
  EXPECT_TRUE(rc::check([] {
    const core::JobEvent job = any::job();
    const auto event = encode_job(job, "c1");
    const auto registry = encode_registry(job, "c1");
    RC_ASSERT((event_in<core::JobEvent>(decode_event(view_of(event))) == job));
    RC_ASSERT((event_in<core::JobEvent>(decode_event(view_of(registry))) == job));
  }));
}

TEST(RoundTrip, ARuleStatus) {
  EXPECT_TRUE(rc::check([] {
    const core::RuleStatusEvent status = any::rule_status();
    const auto record = encode_rule_status(status, "c1");
    RC_ASSERT((event_in<core::RuleStatusEvent>(decode_event(view_of(record))) == status));
  }));
}

TEST(RoundTrip, ACommand) {
  EXPECT_TRUE(rc::check([] {
    const core::Command command = any::command();
    const auto record = encode_command(command, "/c1/router");
    const auto back = decode_command(view_of(record));
    RC_ASSERT(whole(back).command.has_value());
    RC_ASSERT((*back->command == command));
  }));
}

TEST(RoundTrip, AnAck) {
  EXPECT_TRUE(rc::check([] {
    const core::Ack ack = any::ack();
    const auto record = encode_ack(ack, "c1");
    RC_ASSERT((whole(decode_ack(view_of(record))) == ack));
  }));
}

TEST(RoundTrip, ADelivery) {
  EXPECT_TRUE(rc::check([] {
    const core::Delivery delivery = any::delivery();
    const auto record = encode_delivery(delivery, any::time(), "c1");
    RC_ASSERT((whole(decode_delivery(view_of(record))) == delivery));
  }));
}

TEST(RoundTrip, ANotificationInTheOutbox) {
  EXPECT_TRUE(rc::check([] {
    const core::Notification notification = any::notification();
    const auto record = encode_notification(notification);
    RC_ASSERT((whole(decode_notification(view_of(record))) == notification));
  }));
}

}  // namespace
}  // namespace tocsin::ingest

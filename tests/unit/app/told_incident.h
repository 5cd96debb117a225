// An open issue that a message of a group has told, over the API's journal.
#pragma once

#include <string>

#include "tests/unit/app/api_fixture.h"

namespace tocsin::app {

class ToldIncidentTest : public ApiTest {
 protected:
  static constexpr const char* kGroupHash =
      "a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f90";

  void publish(const std::vector<core::OutRecord>& records) {
    ingest::PublisherOptions options;
    options.writer = "test";
    options.durable = true;
    auto publisher = transport_->publisher(options);
    ASSERT_TRUE(publisher);
    for (const core::OutRecord& record : records) ASSERT_TRUE((*publisher)->publish(record));
    ASSERT_TRUE((*publisher)->flush(std::chrono::seconds(10)));
  }
  template <typename Holds>
  static bool comes_true(Holds holds) {
    for (int i = 0; i < 1000; ++i) {
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  Json items(const std::string& path) { return ask("GET", path).json["items"]; }

  /// Its key; known to the view once this returns.
  std::string tell(std::uint64_t generation = 1, std::uint64_t episode = 1) {
    (void)ask("POST", "/api/v2/alerts", "", R"([{"labels": {"alertname": "A", "job": "vit"}}])");
    Json listed;
    EXPECT_TRUE(comes_true([&] {
      listed = items("/api/v1/issues");
      return listed.is_array() && listed.size() == 1;
    }));
    core::Notification message;
    message.notification_id = "ntf_" + std::to_string(generation) + std::to_string(episode);
    message.integration = message.receiver = message.type = "people";
    message.group_hash = kGroupHash;
    message.generation = generation;
    message.reason = "first";
    message.decided_at = clock_.now();
    core::NotifiedIssue notified;
    notified.issue_key = listed[0]["key"];
    notified.episode = episode;
    notified.issue.event_id = listed[0]["event_id"];
    message.issues.push_back(notified);
    publish({ingest::encode_notification(message)});
    const std::string what = R"({"what": ")" + message.notification_id + R"(", "note": "x"})";
    EXPECT_TRUE(comes_true([&] {
      const Told told = ask("POST", "/api/v1/acks", "", what);
      if (told.status != 202) return false;
      EXPECT_EQ(ask("DELETE", "/api/v1/acks/" + std::string(told.json["ack"]["id"])).status, 204);
      return true;
    })) << "the message is not known";
    return notified.issue_key;
  }
};

}  // namespace tocsin::app

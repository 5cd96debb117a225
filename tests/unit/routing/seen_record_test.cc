// The record of events that were seen: what is written is read, damage is told, old records are read.
#include "routing/tables/seen_record.h"

#include <gtest/gtest.h>

#include "core/identity.h"

namespace tocsin::routing {
namespace {

std::vector<SeenEvent> some_events() {
  std::vector<SeenEvent> out;
  for (int i = 0; i < 300; ++i) {
    SeenEvent one;
    for (std::size_t k = 0; k < one.hash.size(); ++k) {
      one.hash[k] = static_cast<std::uint8_t>(31 * i + 7 * static_cast<int>(k));
    }
    // A clock that steps back now and then.
    one.at = core::wall_time(1'700'000'000'000'000'000 + i * 1'000 - (i % 7 == 0 ? 90'000 : 0));
    out.push_back(one);
  }
  return out;
}

void expect_same(const std::vector<SeenEvent>& a, const std::vector<SeenEvent>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].hash, b[i].hash) << i;
    EXPECT_EQ(a[i].at, b[i].at) << i;
  }
}

TEST(SeenRecord, WhatIsWrittenIsRead) {
  const auto events = some_events();
  const std::string value = write_seen_record(events);
  const auto back = read_seen_record("1", value);
  ASSERT_TRUE(back) << back.error().message;
  expect_same(*back, events);
  EXPECT_LT(value.size(), events.size() * 20);  // JSON took 50 for each
}

TEST(SeenRecord, EveryByteCounts) {
  auto events = some_events();
  events.resize(3);
  const std::string value = write_seen_record(events);
  for (std::size_t i = 0; i < value.size(); ++i) {
    std::string damaged = value;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_FALSE(read_seen_record("1", damaged)) << i;
    EXPECT_FALSE(read_seen_record("1", value.substr(0, i))) << i;
  }
  EXPECT_FALSE(read_seen_record("1", write_seen_record({})));
}

TEST(SeenRecord, WhatEarlierReleasesWroteIsRead) {
  const auto events = some_events();
  std::string json = R"({"seen":[)";
  for (const SeenEvent& one : events) {
    json += (json.back() == '[' ? "[\"" : ",[\"") + core::base32(one.hash) + "\"," +
            std::to_string(core::nanoseconds(one.at)) + "]";
  }
  const auto many = read_seen_record("1", json + "]}");
  ASSERT_TRUE(many) << many.error().message;
  expect_same(*many, events);
  const auto alone = read_seen_record(core::base32(events[4].hash),
                                      std::to_string(core::nanoseconds(events[4].at)));
  ASSERT_TRUE(alone) << alone.error().message;
  expect_same(*alone, {events[4]});
}

}  // namespace
}  // namespace tocsin::routing

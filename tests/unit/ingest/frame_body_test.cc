// Bodies that are not columns, as the structs that exist for them.
#include "ingest/wire/frame_body.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/unit/ingest/frame_fixture.h"

namespace tocsin::ingest {
namespace {

using namespace fixture;

core::FrameBody body_of(const Bytes& bytes) {
  const Decoded decoded = decode_frame(bytes);
  EXPECT_TRUE(decoded);
  auto body = decode_body(decoded.frame());
  EXPECT_TRUE(body);
  return body ? std::move(*body) : core::FrameBody();
}

TEST(FrameBody, ADictionaryIsItsNamesWithWhatIsSaidOfThem) {
  const Bytes stored = read_data("wire/dictionary.bin");
  const core::FrameBody body = body_of(stored);
  const auto* names = std::get_if<core::Dictionary>(&body);
  ASSERT_NE(names, nullptr);
  ASSERT_EQ(names->size(), 3U);
  EXPECT_EQ((*names)[0].type, core::DictionaryType::worker);
  EXPECT_EQ((*names)[0].name, "worker_0");
  EXPECT_EQ((*names)[1].attrs.collections, std::vector<std::string>{"gradients"});
  EXPECT_EQ((*names)[1].role, core::Role::gradient);
  EXPECT_EQ((*names)[1].dims_bytes.size(), 4 * sizeof(std::int64_t));
  EXPECT_EQ((*names)[2].attrs.direction, core::Direction::min);
  EXPECT_EQ((*names)[2].attrs.unit, "m");
  for (const core::NamedEntry& entry : *names) EXPECT_FALSE(entry.attrs_wrong);
}

/// The one entry of a dictionary with these attributes.
core::NameAttrs attrs_of(std::string_view attrs, bool wrong) {
  core::DictionaryEntry entry;
  entry.name = "loss";
  entry.attrs = attrs;
  FrameWriter writer;
  const Bytes bytes = finished(writer.dictionary(header(), {&entry, 1}));
  const core::FrameBody body = body_of(bytes);
  const core::NamedEntry& named = std::get<core::Dictionary>(body).at(0);
  EXPECT_EQ(named.attrs_wrong, wrong) << attrs;
  EXPECT_EQ(named.name, "loss") << "the name holds whatever is said of it";
  return named.attrs;
}

TEST(FrameBody, AttributesNobodyKnowsArePassedOver) {
  EXPECT_EQ(attrs_of(R"({"shard":[[0,2]],"replicated":true})", false), core::NameAttrs());
  EXPECT_EQ(attrs_of("", false), core::NameAttrs());
}

TEST(FrameBody, TheAxisOfUnitsIsAWholeNumber) {
  EXPECT_EQ(attrs_of(R"({"axis":-1})", false).axis, -1);
  EXPECT_EQ(attrs_of(R"({"axis":"last"})", true).axis, std::nullopt);
}

TEST(FrameBody, WhatIsWrongAmongAttributesIsLeftOutAndMarked) {
  EXPECT_EQ(attrs_of(R"({"unit":"m","direction":"up"})", true).unit, "m");
  EXPECT_EQ(attrs_of(R"({"direction":"up"})", true).direction, std::nullopt);
  EXPECT_EQ(attrs_of("nothing of JSON", true), core::NameAttrs());
  EXPECT_EQ(attrs_of("[]", true), core::NameAttrs());
  const std::string deep =
      R"({"unit":"m","x":)" + std::string(40, '[') + std::string(40, ']') + "}";
  EXPECT_EQ(attrs_of(deep, true), core::NameAttrs()) << "bounded like all JSON from outside";
  const std::string large = R"({"unit":")" + std::string(64 * 1024, 'm') + "\"}";
  EXPECT_EQ(attrs_of(large, true), core::NameAttrs());
}

TEST(FrameBody, ALifecycleIsItsStructAndNothingElseIsOne) {
  const Bytes start = read_data("wire/lifecycle_start.bin");
  const core::FrameBody body = body_of(start);
  const auto* life = std::get_if<core::Lifecycle>(&body);
  ASSERT_NE(life, nullptr);
  EXPECT_EQ(life->event, core::LifecycleEvent::start);

  FrameWriter writer;
  const Bytes wrong = finished(writer.lifecycle(header(), R"({"event":"born"})"));
  EXPECT_FALSE(decode_body(decode_frame(wrong).frame()));
  EXPECT_EQ(body_of(step_end_frame()).index(), 0U);
  EXPECT_EQ(body_of(summary_frame()).index(), 0U);
}

TEST(FrameBody, ALifecycleThatIsNoneIsRefusedWithItsReason) {
  FrameWriter writer;
  core::RecordView record;
  const Bytes wrong = finished(writer.lifecycle(header(), R"({"event":"born"})"));
  record.value = wrong;
  JsonScalarDecoder json;
  const auto failure =
      decode_telemetry(record, json, [](const core::FrameView&, const core::FrameBody&) {
        ADD_FAILURE() << "nothing of a refused record is handed on";
      });
  ASSERT_TRUE(failure);
  EXPECT_EQ(to_string(failure->code), "bad_lifecycle");
  EXPECT_NE(failure->detail.find("event"), std::string::npos);
}

}  // namespace
}  // namespace tocsin::ingest

// The journal's bytes: the published vector, round trips, and every way in which they can be wrong.
#include "ingest/journal_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "ingest/crc32c.h"

namespace tocsin::ingest {
namespace {

using testing::ElementsAre;
using testing::Pair;

std::vector<std::byte> from_hex(std::string_view text) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

core::OutRecord record(std::string topic, std::string key, std::optional<std::string> value) {
  core::OutRecord out;
  out.topic = std::move(topic);
  out.key = std::move(key);
  out.value = std::move(value);
  out.timestamp = 1;
  return out;
}

std::vector<std::byte> batch_of(const std::vector<core::OutRecord>& records) {
  BatchBuilder batch;
  batch.begin(7, 0, 1'767'323'045'678'000'000);
  for (const auto& one : records) EXPECT_TRUE(batch.add(one, 99));
  const auto bytes = batch.finish();
  return {bytes.begin(), bytes.end()};
}

TEST(Crc32c, HasThePublishedValues) {
  const std::string_view digits = "123456789";
  EXPECT_EQ(crc32c(std::as_bytes(std::span(digits.data(), digits.size()))), 0xe3069283U);
  EXPECT_EQ(crc32c({}), 0U);
  const std::vector<std::byte> zeros(32);  // RFC 3720 B.4
  EXPECT_EQ(crc32c(zeros), 0x8a9136aaU);
}

TEST(Crc32c, GoesOnFromWhatCameBeforeAtEveryCut) {
  std::mt19937 random(1);
  std::vector<std::byte> bytes(10'000);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  const auto whole = crc32c(bytes);
  for (std::size_t cut = 0; cut <= bytes.size(); cut += 97) {
    const auto all = std::span<const std::byte>(bytes);
    EXPECT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), whole);
  }
}

TEST(JournalFormat, WritesThePublishedBatch) {
  const auto expected = from_hex(
      "380000008704953d0700000000000000010000000000000080a7ff44f2ca8618"
      "20000000040000000100000001000000010000000000000061636b736b760000");
  EXPECT_EQ(batch_of({record("acks", "k", "v")}), expected);
  EXPECT_EQ(check_batch(expected).state, BatchState::complete);
}

TEST(JournalFormat, RecordsComeBackAsTheyWere) {
  auto full = record("issues", "run", "value");
  full.headers = {{"ce_id", "42"}, {"empty", ""}};
  auto timeless = record("issues", "", "");
  timeless.timestamp = 0;
  const auto bytes = batch_of({full, record("commands", "run/stop", std::nullopt), timeless});
  ASSERT_EQ(check_batch(bytes).state, BatchState::complete);
  EXPECT_EQ(check_batch(bytes).header.count, 3U);

  auto rest = std::span<const std::byte>(bytes).subspan(kBatchHeaderBytes);
  const auto first = parse_record(rest);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->topic, "issues");
  EXPECT_EQ(first->key, "run");
  EXPECT_EQ(first->value, "value");
  EXPECT_EQ(first->timestamp, 1);
  EXPECT_EQ(first->header("ce_id"), "42");
  EXPECT_EQ(first->header("absent"), std::nullopt);
  EXPECT_THAT(headers_of(*first), ElementsAre(Pair("ce_id", "42"), Pair("empty", "")));
  const auto second = parse_record(rest.subspan(first->total_bytes));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->value, std::nullopt);
  const auto third = parse_record(rest.subspan(first->total_bytes + second->total_bytes));
  ASSERT_TRUE(third);
  EXPECT_EQ(third->value, "");
  EXPECT_EQ(third->timestamp, 99);  // what add() was told the time is
}

TEST(JournalFormat, EveryPrefixIsIncompleteAndNothingElse) {
  const auto bytes = batch_of({record("acks", "key", std::string(100, 'x'))});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(check_batch(std::span(bytes).first(size)).state, BatchState::incomplete) << size;
  }
}

TEST(JournalFormat, EveryFlippedBitIsFound) {
  const auto bytes = batch_of({record("acks", "key", "value")});
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    auto damaged = bytes;
    damaged[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    // A flipped length may ask for more bytes than there are; it never passes.
    EXPECT_NE(check_batch(damaged).state, BatchState::complete) << bit;
  }
}

TEST(JournalFormat, LengthsThatLieAreRefused) {
  const auto bytes = batch_of({record("acks", "key", "value")});
  const auto body = std::span<const std::byte>(bytes).subspan(kBatchHeaderBytes);
  for (const std::size_t field : {0U, 4U, 6U, 8U, 12U}) {
    for (const std::uint32_t lie : {0U, 1U, 7U, 0x7FFFFFFFU, 0xFFFFFFF0U}) {
      std::vector<std::byte> copy(body.begin(), body.end());
      const std::size_t width = field == 4 || field == 6 ? 2 : 4;
      std::memcpy(copy.data() + field, &lie, width);
      const auto parsed = parse_record(copy);
      if (parsed) {
        EXPECT_LE(parsed->total_bytes, copy.size());
      }
    }
  }
}

TEST(JournalFormat, ASegmentHeaderComesBackAndDamageIsNamed) {
  const auto bytes = encode_segment_header({12345, 678});
  const auto header = decode_segment_header(bytes);
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->created, 12345);
  EXPECT_EQ(header->first_sequence, 678U);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    auto damaged = bytes;
    damaged[i] ^= std::byte{0x10};
    const auto refused = decode_segment_header(damaged);
    ASSERT_FALSE(refused) << i;
    EXPECT_EQ(refused.error().code, core::Code::data_loss);
  }
  EXPECT_FALSE(decode_segment_header(std::span(bytes).first(63)));
}

TEST(JournalFormat, WhatDoesNotFitIsRefusedAndTheBatchGoesOn) {
  BatchBuilder batch;
  batch.begin(0, 0, 1);
  EXPECT_FALSE(batch.add(record("", "k", "v"), 1));
  EXPECT_FALSE(batch.add(record(std::string(70'000, 't'), "k", "v"), 1));
  auto long_header = record("acks", "k", "v");
  long_header.headers = {{std::string(70'000, 'h'), ""}};
  EXPECT_FALSE(batch.add(long_header, 1));
  EXPECT_TRUE(batch.add(record("acks", "k", "v"), 1));
  EXPECT_EQ(check_batch(batch.finish()).header.count, 1U);
}

TEST(JournalFormat, RandomBytesNeverPassAndNeverCrash) {
  std::mt19937_64 random(42);
  std::vector<std::byte> bytes(512);
  for (int round = 0; round < 20'000; ++round) {
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    bytes[1] = bytes[2] = bytes[3] = std::byte{0};  // a plausible length
    EXPECT_NE(check_batch(bytes).state, BatchState::complete);
    (void)parse_record(bytes);
    (void)decode_segment_header(bytes);
  }
}

}  // namespace
}  // namespace tocsin::ingest

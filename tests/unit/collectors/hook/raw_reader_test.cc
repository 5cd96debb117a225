// Raw tensors there and back: every type, views, chunks that are missing, come twice, in another order or
// damaged, on the topic and in a directory.
#include "collectors/hook/client/raw_reader.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/unit/collectors/hook/raw_fixture.h"

namespace tocsin::hook {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr milliseconds kNow{0};

class RawReaderTest : public RawTest {
 protected:
  /// A tensor of `bytes` bytes with a pattern in it, captured at the present step.
  std::vector<std::byte> capture(Session& session, const std::string& name, core::Dtype dtype,
                                 std::vector<std::int64_t> shape,
                                 std::vector<std::int64_t> strides = {}) {
    std::uint64_t bytes = core::size_of(dtype);
    for (const std::int64_t extent : shape) bytes *= static_cast<std::uint64_t>(extent);
    std::vector<std::byte> data(bytes);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 31 + 7);
    NameInfo info;
    info.dtype = dtype;
    LentTensor lent;
    lent.id = session.name(name, info);
    lent.data = data.data();
    lent.shape = shape;
    lent.strides = strides;
    lent.dtype = dtype;
    session.tensors(std::array{lent});
    return data;
  }

  /// The records of the topic, and a broker that has them as `change` leaves them.
  void rewrite(const std::function<void(std::vector<std::string>&)>& change) {
    std::vector<std::string> records;
    for (const auto& stored : broker_.records(core::topic::kTensors)) {
      records.push_back(*stored.record.value);
    }
    change(records);
    broker_.trim(core::topic::kTensors, 0, broker_.end(core::topic::kTensors));
    for (std::string& record : records) {
      core::OutRecord out;
      out.topic = core::topic::kTensors;
      out.key = core::route_key(make_identity().run);
      out.value = std::move(record);
      broker_.append(std::move(out));
    }
  }

  /// One tensor of three chunks on the topic.
  std::vector<std::byte> three_chunks() {
    Session session =
        open_raw(R"({every: 1, collections: {gradients: {raw: true}}, raw: {chunk: 4KiB}})");
    auto data = capture(session, "gradient/w", core::Dtype::f32, {10, 300});
    const auto place = topic_place();
    send_all(*place);
    EXPECT_EQ(broker_.records(core::topic::kTensors).size(), 3U);
    return data;
  }
};

TEST_F(RawReaderTest, EveryTypeComesBackAsItWas) {
  Session session =
      open_raw(R"({every: 1, collections: {gradients: {raw: true}}, raw: {chunk: 4KiB}})");
  std::vector<std::pair<core::Dtype, std::vector<std::byte>>> sent;
  for (const int code : {1, 2, 3, 4, 5, 6, 10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32}) {
    const auto dtype = static_cast<core::Dtype>(code);
    const std::string name = "gradient/" + std::to_string(code);
    sent.emplace_back(dtype, capture(session, name, dtype, {3, 5, 211}));
  }
  capture(session, "gradient/one", core::Dtype::f16, {});
  const auto place = topic_place();
  send_all(*place);
  RawReader reader = this->reader();
  for (const auto& [dtype, data] : sent) {
    const auto read =
        reader.read(query("gradient/" + std::to_string(static_cast<int>(dtype))), kNow);
    ASSERT_TRUE(read) << core::to_string(dtype) << ": " << read.error().message;
    EXPECT_EQ(read->dtype, dtype);
    EXPECT_EQ(read->dims, (std::vector<std::int64_t>{3, 5, 211}));
    EXPECT_EQ(read->data, data) << core::to_string(dtype);
    EXPECT_EQ(core::meta::role(read->meta), core::Role::gradient);
  }
  const auto scalar = reader.read(query("gradient/one"), kNow);
  ASSERT_TRUE(scalar);
  EXPECT_TRUE(scalar->dims.empty());
  EXPECT_EQ(scalar->data.size(), 2U);
}

TEST_F(RawReaderTest, AViewComesBackRowByRow) {
  Session session = open_raw();
  // 4 × 3 of a 3 × 4 block, transposed: elements of one byte.
  const auto block = capture(session, "gradient/t", core::Dtype::u8, {4, 3}, {1, 4});
  const auto place = topic_place();
  send_all(*place);
  RawReader reader = this->reader();
  const auto read = reader.read(query("gradient/t"), kNow);
  ASSERT_TRUE(read);
  std::vector<std::byte> expected;
  for (std::size_t row = 0; row < 4; ++row) {
    for (std::size_t column = 0; column < 3; ++column) expected.push_back(block[row + 4 * column]);
  }
  EXPECT_EQ(read->data, expected);
}

TEST_F(RawReaderTest, ChunksInAnotherOrderAndTwiceAreTheTensor) {
  const auto data = three_chunks();
  rewrite([](std::vector<std::string>& records) {
    records = {records[2], records[0], records[2], records[1]};
  });
  RawReader reader = this->reader();
  const auto read = reader.read(query("gradient/w"), kNow);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->data, data);
  EXPECT_THAT(core::to_json(core::Value(reader.counters())), HasSubstr(R"("duplicates_total":1)"));
}

TEST_F(RawReaderTest, AMissingChunkIsNamedAndMayComeLater) {
  const auto data = three_chunks();
  std::string late;
  rewrite([&](std::vector<std::string>& records) {
    late = records[1];
    records.erase(records.begin() + 1);
  });
  RawReader reader = this->reader();
  const auto missing = reader.read(query("gradient/w"), kNow);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, core::Code::not_found);
  EXPECT_EQ(missing.error().message, "of its 3 chunks 2 are there");
  core::OutRecord out;
  out.topic = core::topic::kTensors;
  out.key = core::route_key(make_identity().run);
  out.value = late;
  broker_.append(std::move(out));
  const auto read = reader.read(query("gradient/w"), kNow);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->data, data);
}

TEST_F(RawReaderTest, ADamagedChunkIsCountedByItsCodeAndIsNotThere) {
  three_chunks();
  rewrite([](std::vector<std::string>& records) {
    records[1][500] ^= 1;
    records.emplace_back("no frame at all");
  });
  RawReader reader = this->reader();
  const auto read = reader.read(query("gradient/w"), kNow);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "of its 3 chunks 2 are there");
  EXPECT_THAT(core::to_json(core::Value(reader.counters())),
              HasSubstr(R"("refused_total":{"bad_crc":1,"not_a_frame":1})"));
}

TEST_F(RawReaderTest, WhatRetentionTookIsSaidToBeGone) {
  three_chunks();
  RawReader reader = this->reader();
  ASSERT_TRUE(reader.read(query("gradient/w"), kNow));
  broker_.trim(core::topic::kTensors, 0, 2);
  const auto read = reader.read(query("gradient/w"), kNow);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, core::Code::data_loss);
  EXPECT_EQ(read.error().message, "chunk 0 of 3 is missing (1 are there)");
}

TEST_F(RawReaderTest, ALaterLaunchTakesThePlaceOfAnEarlierOne) {
  Session session = open_raw();
  capture(session, "gradient/w", core::Dtype::f32, {2});
  const auto place = topic_place();
  send_all(*place);
  RawTensor again;
  again.header.run = make_identity().run;
  again.header.mode = core::Mode::train;
  again.header.attempt = 7;
  again.header.worker = core::name_hash("worker_0");
  again.name = core::name_hash("gradient/w");
  again.dtype = core::Dtype::f32;
  again.dims = {1};
  again.data.resize(4);
  ASSERT_TRUE(place->put({again}, [] { return false; }));
  RawReader reader = this->reader();
  const auto read = reader.read(query("gradient/w"), kNow);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->dims, (std::vector<std::int64_t>{1}));
}

TEST_F(RawReaderTest, NamesWorkersStepsAndModesThatAreNotThere) {
  three_chunks();
  RawReader reader = this->reader();
  EXPECT_FALSE(reader.read(query("gradient/v"), kNow));
  EXPECT_FALSE(reader.read(query("gradient/w", 1), kNow));
  RawQuery other = query("gradient/w");
  other.mode = core::Mode::eval;
  EXPECT_FALSE(reader.read(other, kNow));
  other = query("gradient/w");
  other.worker = core::name_hash("worker_1");
  EXPECT_FALSE(reader.read(other, kNow));
  other.worker = 0;
  EXPECT_TRUE(reader.read(other, kNow)) << "any worker";
}

class RawDirectoryTest : public RawReaderTest {
 protected:
  RawDirectoryTest() : directory_(std::filesystem::path(::testing::TempDir()) / "raw_directory") {
    std::filesystem::remove_all(directory_);
  }
  ~RawDirectoryTest() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<RawPlace> directory_place() {
    raw_.to = directory_.string();
    return raw_objects(broker_.publisher({}).value(), RawFrames("worker_0", raw_.chunk),
                       core::route_key(make_identity().run), open_blobs(raw_).value(), "run/1/w");
  }
  std::vector<std::filesystem::path> files() {
    std::vector<std::filesystem::path> out;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_)) {
      if (entry.is_regular_file()) out.push_back(entry.path());
    }
    return out;
  }

  std::filesystem::path directory_;
};

TEST_F(RawDirectoryTest, TensorsOfAStepAreOneFileAndTheTopicSaysWhere) {
  Session session = open_raw();
  const auto first = capture(session, "gradient/a", core::Dtype::bf16, {40, 50});
  const auto second = capture(session, "gradient/b", core::Dtype::f64, {7});
  const auto place = directory_place();
  send_all(*place);
  ASSERT_EQ(files().size(), 1U);
  EXPECT_EQ(files()[0].filename().string(), "train-000000000-000000000000002a-000000.tcsn");
  for (const auto& stored : broker_.records(core::topic::kTensors)) {
    EXPECT_LT(stored.record.value->size(), 400U) << "a reference, no elements";
  }
  RawReader reader = this->reader();
  const auto read = reader.read(query("gradient/a"), kNow);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->data, first);
  EXPECT_EQ(reader.read(query("gradient/b"), kNow).value().data, second);
}

TEST_F(RawDirectoryTest, ADamagedShortOrMissingFileIsSaidToBe) {
  Session session = open_raw();
  capture(session, "gradient/a", core::Dtype::f32, {100});
  const auto place = directory_place();
  send_all(*place);
  const std::filesystem::path file = files().at(0);
  const auto refused = [&] {
    const auto read = reader().read(query("gradient/a"), kNow);
    return read ? std::string("read") : read.error().message;
  };
  EXPECT_EQ(refused(), "read");
  {
    std::fstream change(file, std::ios::in | std::ios::out | std::ios::binary);
    change.seekp(300);
    change.put('!');
  }
  EXPECT_THAT(refused(), HasSubstr("bad_crc"));
  std::filesystem::resize_file(file, 100);
  EXPECT_THAT(refused(), HasSubstr("shorter than its reference says"));
  std::filesystem::remove(file);
  EXPECT_THAT(refused(), HasSubstr("No such file"));
}

TEST_F(RawDirectoryTest, ADirectoryThatCannotBeWrittenIsRefusedAFullOneIsTriedAgain) {
  Session session = open_raw();
  capture(session, "gradient/a", core::Dtype::f32, {100});
  std::ofstream(directory_) << "a file stands here";
  const auto taken = raw_queue_->take(1U << 20);
  const auto put = directory_place()->put(taken, [] { return false; });
  ASSERT_FALSE(put);
  EXPECT_FALSE(put.error().retryable()) << put.error().message;
  std::filesystem::remove(directory_);
  if (!std::filesystem::exists("/dev/full")) return;
  raw_.to = "/dev";
  std::filesystem::create_directories(directory_ / "run/1/w");
  std::filesystem::create_symlink(
      "/dev/full", directory_ / "run/1/w/train-000000000-000000000000002a-000000.tcsn.part");
  const auto full = directory_place()->put(taken, [] { return false; });
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, core::Code::resource_exhausted) << full.error().message;
}

TEST_F(RawReaderTest, TheSenderTriesAgainGivesUpAtItsTimeAndCounts) {
  Session session = open_raw();
  capture(session, "gradient/a", core::Dtype::f32, {100});
  broker_.fail_next_publishes(core::unavailable("nobody answers"), 1'000'000);
  RawSender sender(
      *raw_queue_, [&] { return core::Result<std::unique_ptr<RawPlace>>(topic_place()); }, clock_);
  sender.close(clock_.monotonic() + std::chrono::seconds(5));
  clock_.advance(std::chrono::seconds(6));
  sender.run();
  EXPECT_TRUE(raw_queue_->wait_until_empty(kNow));
  EXPECT_THAT(raw_queue_->loss(), HasSubstr("1 undelivered"));

  broker_.heal();
  capture(session, "gradient/a", core::Dtype::f32, {100});
  RawSender second(
      *raw_queue_, [&] { return core::Result<std::unique_ptr<RawPlace>>(topic_place()); }, clock_);
  second.close(clock_.monotonic() + std::chrono::seconds(5));
  second.run();
  EXPECT_EQ(broker_.records(core::topic::kTensors).size(), 1U);
}

}  // namespace
}  // namespace tocsin::hook

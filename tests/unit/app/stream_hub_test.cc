// Events to many readers: order, filters, resuming, and readers that are too slow.
#include "app/api/stream_hub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/system_clock.h"

namespace tocsin::app {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class StreamHubTest : public ::testing::Test {
 protected:
  void limit(StreamLimits limits) { hub_ = StreamHub::create(clock_, limits); }
  std::shared_ptr<HttpStream> open(StreamFilter filter = {}, std::string_view last = "",
                                   const std::string& who = "ada") {
    auto made = hub_->open(who, std::move(filter), last);
    EXPECT_TRUE(made) << made.error().message;
    return made ? std::move(*made) : nullptr;
  }
  void publish(int count, const std::string& type = "issue", std::vector<core::RunUid> runs = {},
               std::size_t bytes = 0) {
    for (int i = 0; i < count; ++i) {
      hub_->publish(type, runs,
                    core::ValueMap{{"n", ++published_}, {"x", std::string(bytes, 'x')}});
    }
  }
  // What it gets until nothing is left.
  static std::string all(HttpStream& stream) {
    std::string out;
    for (HttpStream::Piece piece = stream.take(); !piece.text.empty(); piece = stream.take()) {
      out += piece.text;
      if (piece.last) break;
    }
    return out;
  }
  static std::string last_id(const std::string& text) {
    const std::size_t at = text.rfind("id: ") + 4;
    return text.substr(at, text.find('\n', at) - at);
  }
  static core::RunUid run(std::uint8_t n) {
    core::RunUid out;
    out.bytes[0] = n;
    return out;
  }

  const core::SystemClock clock_{};
  std::shared_ptr<StreamHub> hub_ = StreamHub::create(clock_);
  int published_ = 0;
};

TEST_F(StreamHubTest, NothingIsKeptBeforeTheFirstReader) {
  publish(3);
  EXPECT_FALSE(hub_->has_begun());
  const auto stream = open();
  EXPECT_THAT(all(*stream), Not(HasSubstr("event: issue")));
  publish(1);
  EXPECT_THAT(all(*stream), HasSubstr("event: issue\ndata: {\"n\":4,"));
}

TEST_F(StreamHubTest, EachReaderGetsWhatItAskedFor) {
  const auto everything = open();
  const auto silences = open({{"silence"}, {}});
  const auto of_run = open({{}, {run(1)}});
  publish(1, "issue", {run(1)});
  publish(1, "issue", {run(2)});
  publish(1, "silence");
  const std::string heard = all(*of_run);
  EXPECT_THAT(heard, HasSubstr("{\"n\":1,"));
  EXPECT_THAT(heard, Not(HasSubstr("{\"n\":2,")));
  EXPECT_THAT(heard, HasSubstr("{\"n\":3,")) << "of no run: everybody's";
  EXPECT_THAT(all(*everything), HasSubstr("{\"n\":2,"));
  EXPECT_THAT(all(*silences), Not(HasSubstr("event: issue")));
}

TEST_F(StreamHubTest, WhoComesBackGoesOnWhereItWas) {
  std::string id;
  {
    const auto stream = open();
    publish(2);
    id = last_id(all(*stream));
  }
  publish(2);
  const std::string heard = all(*open({}, id));
  EXPECT_THAT(heard, Not(HasSubstr("{\"n\":2,")));
  EXPECT_THAT(heard, HasSubstr("{\"n\":3,"));
  EXPECT_THAT(heard, HasSubstr("{\"n\":4,"));
  EXPECT_THAT(heard, Not(HasSubstr("event: reset")));
}

TEST_F(StreamHubTest, WhatIsNoLongerKeptIsSaid) {
  StreamLimits limits;
  limits.ring = 3;
  limit(limits);
  auto stream = open();
  publish(1);
  const std::string id = last_id(all(*stream));
  stream.reset();
  publish(4);
  EXPECT_THAT(all(*open({}, id)), HasSubstr("event: reset\n"));
  publish(2);
  EXPECT_THAT(all(*open({}, last_id(all(*open())))), Not(HasSubstr("event: reset")));
  for (const char* foreign : {"0badc0de-1", "x", "-1", "00000000-99999999999999999999"})
    EXPECT_THAT(all(*open({}, foreign)), HasSubstr("event: reset\n")) << foreign;
}

TEST_F(StreamHubTest, ASlowReaderIsToldSoAndCutOff) {
  StreamLimits limits;
  limits.waiting_bytes = 10'000;
  limit(limits);
  const auto slow = open();
  const auto other = open({{"silence"}, {}});
  all(*slow);
  publish(12, "issue", {}, 1000);
  const HttpStream::Piece piece = slow->take();
  EXPECT_TRUE(piece.last);
  EXPECT_THAT(piece.text, HasSubstr("event: reset\n"));
  EXPECT_THAT(piece.text, HasSubstr("too slow"));
  EXPECT_FALSE(other->take().last) << "none of it was for this one";
}

TEST_F(StreamHubTest, WhatWasMissedIsNotHeldAgainstWhoComesBack) {
  StreamLimits limits;
  limits.waiting_bytes = 10'000;
  limit(limits);
  auto stream = open();
  const std::string id = last_id(all(*stream));
  stream.reset();
  publish(50, "issue", {}, 1000);
  const std::string heard = all(*open({}, id));
  EXPECT_THAT(heard, HasSubstr("{\"n\":50,"));
  EXPECT_THAT(heard, Not(HasSubstr("event: reset")));
}

TEST_F(StreamHubTest, StreamsAreBounded) {
  StreamLimits limits;
  limits.streams = 3;
  limits.streams_of_one = 2;
  limit(limits);
  auto first = open({}, "", "ada");
  const auto second = open({}, "", "ada");
  EXPECT_FALSE(hub_->open("ada", {}, ""));
  const auto third = open({}, "", "bob");
  EXPECT_FALSE(hub_->open("eve", {}, ""));
  first.reset();
  EXPECT_TRUE(hub_->open("eve", {}, ""));
}

TEST_F(StreamHubTest, AReaderIsWokenOnceUntilItTakes) {
  const auto stream = open();
  int woken = 0;
  stream->attach([&] { ++woken; });
  stream->take();
  publish(5);
  EXPECT_EQ(woken, 1);
  stream->take();
  publish(1);
  EXPECT_EQ(woken, 2);
  stream->detach();
  publish(1);
  EXPECT_EQ(woken, 2);
}

TEST_F(StreamHubTest, TheFirstWordsSayWhereItStands) {
  const std::string words = open()->take().text;
  EXPECT_THAT(words, StartsWith("retry: 2000\nid: "));
  EXPECT_THAT(words, HasSubstr("\nevent: hello\ndata: {\"store\":\""));
}

}  // namespace
}  // namespace tocsin::app

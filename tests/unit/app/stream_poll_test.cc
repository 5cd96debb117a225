// The stream by long polls: nothing is missed between two of them, and each answer ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/api/stream_hub.h"
#include "core/json.h"
#include "core/system_clock.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

class StreamPollTest : public ::testing::Test {
 protected:
  std::shared_ptr<HttpStream> poll(std::string_view cursor, StreamFilter filter = {},
                                   std::chrono::milliseconds patience = 20s) {
    auto made = hub_->poll("ada", std::move(filter), cursor, patience);
    EXPECT_TRUE(made) << made.error().message;
    return made ? std::move(*made) : nullptr;
  }
  void publish(const std::string& type = "issue", std::size_t bytes = 0) {
    hub_->publish(type, {}, core::ValueMap{{"n", ++published_}, {"x", std::string(bytes, 'x')}});
  }
  static core::ValueMap read(const std::string& text) {
    const auto value = core::parse_json(text, text.size());
    EXPECT_TRUE(value) << text;
    return value ? *core::as<core::ValueMap>(*value) : core::ValueMap{};
  }
  static core::Value field(const core::ValueMap& map, std::string_view name) {
    for (const auto& entry : map) {
      if (entry.first == name) return entry.second;
    }
    ADD_FAILURE() << "no field " << name;
    return {};
  }
  static std::string cursor(const std::string& text) {
    return *core::as<std::string>(field(read(text), "cursor"));
  }
  static std::vector<std::int64_t> numbers(const std::string& text) {
    std::vector<std::int64_t> out;
    const core::Value events = field(read(text), "events");
    for (const core::Value& event : *core::as<core::ValueList>(events)) {
      const core::Value data = field(*core::as<core::ValueMap>(event), "data");
      out.push_back(*core::as<std::int64_t>(field(*core::as<core::ValueMap>(data), "n")));
    }
    return out;
  }

  const core::SystemClock clock_{};
  std::shared_ptr<StreamHub> hub_ = StreamHub::create(clock_);
  std::int64_t published_ = 0;
};

TEST_F(StreamPollTest, TheFirstAnswersAtOnceAndTheNextGoesOnBehindIt) {
  const auto first = poll("")->take();
  EXPECT_TRUE(first.last);
  EXPECT_THAT(numbers(first.text), ElementsAre());
  publish();
  publish("silence");
  const auto second = poll(cursor(first.text))->take();
  EXPECT_TRUE(second.last);
  EXPECT_THAT(numbers(second.text), ElementsAre(1, 2));
  EXPECT_NE(second.text.find("\"event\":\"silence\",\"data\":{\"n\":2"), std::string::npos);
  const auto third = poll(cursor(second.text));
  EXPECT_EQ(third->take().text, "") << "nothing is new: it waits";
  int woken = 0;
  third->attach([&] { ++woken; });
  publish();
  EXPECT_EQ(woken, 1);
  const auto heard = third->take();
  EXPECT_TRUE(heard.last);
  EXPECT_THAT(numbers(heard.text), ElementsAre(3));
  third->detach();
}

TEST_F(StreamPollTest, WithoutNewsTheAnswerIsEmptyAndMovesBeyondWhatIsNotWanted) {
  const std::string before = cursor(poll("")->take().text);
  const auto waiting = poll(before, {{"silence"}, {}});
  publish("issue");
  EXPECT_EQ(waiting->take().text, "");
  EXPECT_EQ(waiting->idle_after(), 20s);
  EXPECT_TRUE(waiting->ends_idle());
  const std::string quiet = waiting->idle();
  EXPECT_THAT(numbers(quiet), ElementsAre());
  EXPECT_NE(cursor(quiet), before);
  EXPECT_TRUE(poll(cursor(quiet), {}, 0ms)->take().last) << "without patience at once";
}

TEST_F(StreamPollTest, ACursorOfAnotherProcessOrFromTooLongAgoIsAReset) {
  hub_ = StreamHub::create(clock_, {.ring = 2});
  const std::string old = cursor(poll("")->take().text);
  for (int i = 0; i < 4; ++i) publish();
  for (const std::string& unknown : {old, std::string("0badf00d-3"), std::string("nonsense")}) {
    const auto answer = poll(unknown)->take();
    EXPECT_TRUE(answer.last) << unknown;
    EXPECT_EQ(*core::as<std::string>(field(read(answer.text), "reset")),
              "what came since is not kept");
    EXPECT_EQ(poll(cursor(answer.text))->take().text, "");
  }
}

TEST_F(StreamPollTest, ManyEventsComeInSeveralAnswersAndNoneTwice) {
  std::string at = cursor(poll("")->take().text);
  for (int i = 0; i < 40; ++i) publish("issue", 10'000);
  std::vector<std::int64_t> all;
  int answers = 0;
  while (all.size() < 40 && answers < 40) {
    const auto answer = poll(at)->take();
    EXPECT_LT(answer.text.size(), 100'000);
    for (const std::int64_t one : numbers(answer.text)) all.push_back(one);
    at = cursor(answer.text);
    ++answers;
  }
  EXPECT_GT(answers, 3);
  ASSERT_EQ(all.size(), 40);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<std::int64_t>(i + 1));
}

TEST_F(StreamPollTest, APollThatWaitsIsOneOfTheStreams) {
  hub_ = StreamHub::create(clock_, {.streams_of_one = 1});
  const std::string at = cursor(poll("")->take().text);
  const auto waiting = poll(at);
  EXPECT_FALSE(hub_->poll("ada", {}, at, 20s));
  EXPECT_TRUE(hub_->poll("bob", {}, at, 20s));
}

}  // namespace
}  // namespace tocsin::app

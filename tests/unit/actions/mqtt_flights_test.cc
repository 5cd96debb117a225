// What is known of messages on their way, and what a lost connection says of them.
#include "actions/transport/mqtt_flights.h"

#include <gtest/gtest.h>

#include <vector>

namespace tocsin::actions {
namespace {

using namespace std::chrono_literals;
using Ticket = MqttFlights::Ticket;

/// A broker that closes the connection on packets above `limit`; the library repeats what it has.
struct Broker {
  explicit Broker(std::size_t most) : limit(most) {}

  /// A client's thread and its messages, until all are settled: which were refused.
  std::vector<std::size_t> deliver(std::vector<std::size_t> sizes) {
    std::vector<std::size_t> refused;
    while (!sizes.empty() && connections < 100) {
      connect();
      std::vector<std::pair<Ticket, std::size_t>> sent;
      for (std::size_t size : sizes) {
        if (!flights.room(now)) break;
        flights.reserve();
        sent.emplace_back(flights.enter(++id, size), size);
        library.emplace_back(id, size);
      }
      run();
      sizes.erase(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(sent.size()));
      for (const auto& [ticket, size] : sent) {
        while (!flights.settled(ticket)) connect(), run();
        const auto flight = flights.take(ticket);
        if (flight.refused) {
          refused.push_back(size);
        } else if (flight.lost) {
          sizes.push_back(size);
        }
      }
    }
    return refused;
  }
  void connect() {
    if (connected) return;
    connected = true;
    ++connections;
    flights.connected();
  }
  // The broker reads what the library has, in its order.
  void run() {
    while (connected && !library.empty()) {
      if (library.front().second > limit) {
        connected = false;
        now += 1s;
        if (flights.connection_lost(now).take_back) {
          flights.taken_back();
          library.clear();
        }
        return;
      }
      flights.answer(library.front().first, 0);
      library.erase(library.begin());
    }
  }

  std::size_t limit;
  MqttFlights flights;
  core::Duration now{1h};
  bool connected = false;
  int connections = 0;
  int id = 0;
  std::vector<std::pair<int, std::size_t>> library;
};

TEST(MqttFlights, TheOneMessageThatABrokerDoesNotTakeIsFoundAndAllOthersArrive) {
  Broker broker(4000);
  EXPECT_EQ(broker.deliver({300, 8000, 200, 400, 500}), std::vector<std::size_t>{8000});
  EXPECT_LE(broker.connections, 7);
  EXPECT_EQ(broker.flights.limit().too_large(broker.now), 8000u);
}

TEST(MqttFlights, SeveralLargeOnesAreFoundOneByOne) {
  Broker broker(4000);
  EXPECT_EQ(broker.deliver({9000, 100, 5000, 4001, 200}).size(), 3u);
  EXPECT_LE(broker.connections, 20);
}

TEST(MqttFlights, ARestartOfTheBrokerBlamesNobody) {
  MqttFlights flights;
  flights.connected();
  flights.reserve();
  const Ticket ticket = flights.enter(1, 8000);
  const auto loss = flights.connection_lost(1s);
  EXPECT_FALSE(loss.take_back) << "the library repeats it";
  EXPECT_FALSE(flights.connection_lost(2s).take_back) << "attempts that never connected";
  EXPECT_FALSE(flights.connection_lost(3s).take_back);
  flights.connected();
  flights.answer(1, 0);
  EXPECT_EQ(flights.take(ticket).reason, 0);
  EXPECT_FALSE(flights.limit().too_large(4s));
}

TEST(MqttFlights, TheNextConnectionNeedNotWaitWhereSomethingWasAcknowledged) {
  MqttFlights flights;
  flights.connected();
  flights.reserve();
  (void)flights.enter(1, 10);
  flights.answer(1, 0);
  EXPECT_TRUE(flights.connection_lost(1s).quick);
  flights.connected();
  flights.enter_own(2);
  flights.answer(2, 0);
  EXPECT_FALSE(flights.connection_lost(2s).quick) << "our own \"online\" is no progress";
}

TEST(MqttFlights, AnAnswerThatComesBeforeItsMessageIsEnteredIsNotLost) {
  MqttFlights flights;
  flights.connected();
  flights.reserve();
  flights.answer(5, 0x10);
  const Ticket ticket = flights.enter(5, 10);
  ASSERT_TRUE(flights.settled(ticket));
  EXPECT_EQ(flights.take(ticket).reason, 0x10);
}

TEST(MqttFlights, ABrokerThatAnswersNothingIsConnectedAnew) {
  MqttFlights flights;
  flights.connected();
  for (int id = 1; id <= 20; ++id) {
    EXPECT_FALSE(flights.stuck());
    flights.reserve();
    flights.abandon(flights.enter(id, 10));
  }
  EXPECT_TRUE(flights.stuck());
  EXPECT_TRUE(flights.connection_lost(1s).take_back) << "nobody wants them to be repeated";
  flights.taken_back();
  EXPECT_FALSE(flights.stuck());
}

TEST(PacketLimit, IsAnnouncedByTheConnectionThatHoldsNow) {
  PacketLimit limit;
  EXPECT_FALSE(limit.refuses(1'000'000, false, 0s));
  limit.announced(4000);
  EXPECT_FALSE(limit.refuses(4000, true, 0s));
  EXPECT_TRUE(limit.refuses(4001, true, 0s));
  limit.announced(0);
  EXPECT_FALSE(limit.refuses(4001, true, 0s));
}

TEST(PacketLimit, IsLearnedAfterThreeTimesAndTriedAgainLater) {
  PacketLimit limit;
  EXPECT_FALSE(limit.closed_on(8000, 1s));
  EXPECT_FALSE(limit.closed_on(8000, 2s));
  EXPECT_FALSE(limit.refuses(8000, false, 2s));
  EXPECT_TRUE(limit.closed_on(8000, 3s));
  EXPECT_TRUE(limit.refuses(8000, false, 4s));
  EXPECT_TRUE(limit.refuses(9000, false, 4s));
  EXPECT_FALSE(limit.refuses(7999, false, 4s));
  EXPECT_FALSE(limit.refuses(9000, true, 4s)) << "it cannot be made shorter";
  EXPECT_FALSE(limit.refuses(9000, false, 4s + PacketLimit::kRemembered));
}

TEST(PacketLimit, AMessageWithAnotherFaultTeachesNoLimit) {
  PacketLimit limit;
  limit.taken(2000);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(limit.closed_on(300, 1s));
  EXPECT_TRUE(limit.closed_on(300, 1s)) << "it is not sent again";
  EXPECT_FALSE(limit.refuses(400, false, 2s));
  for (int i = 0; i < 3; ++i) (void)limit.closed_on(5000, 3s);
  limit.taken(6000);
  EXPECT_FALSE(limit.refuses(5000, false, 4s)) << "it has grown";
}

TEST(PacketBytes, AreThoseOfTheStandard) {
  MqttMessage message;
  message.topic = "a/b";
  message.payload = "xyz";
  EXPECT_EQ(packet_bytes(message, MqttVersion::v311), 2u + 5 + 2 + 3);
  EXPECT_EQ(packet_bytes(message, MqttVersion::v5), 2u + 5 + 2 + 1 + 3);
  message.qos = 0;
  EXPECT_EQ(packet_bytes(message, MqttVersion::v311), 2u + 5 + 3);
  message.payload = std::string(200, 'x');
  EXPECT_EQ(packet_bytes(message, MqttVersion::v311), 3u + 5 + 200);
  message.user_properties = {{"k", "v"}};
  EXPECT_EQ(packet_bytes(message, MqttVersion::v5), 3u + 5 + 1 + 7 + 200);
}

}  // namespace
}  // namespace tocsin::actions
